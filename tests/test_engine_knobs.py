"""The table of engines' knobs: complete rows, and at one with the engine presets."""

from dataclasses import fields

import pytest

from s11.engine_knobs import (
    ENGINE_KNOBS,
    ENGINE_OF_POLICY,
    ENGINES,
    chosen_knobs,
    flag_of,
    knob_columns,
)
from s11.plan import EngineLimits
from s11.presets import FLAGS, PRESETS

# Presets that differ on purpose: SGLang's bound lets one long prompt through, so it is left out;
# one TensorRT-LLM preset is what its name says, chunked.
APART = {("sglang", "token_budget"): None, ("tensorrt-llm-chunked", "chunking"): True}


def test_every_row_is_complete_and_none_is_there_twice() -> None:
    knobs = {field.name for field in fields(EngineLimits)}
    for row in ENGINE_KNOBS:
        told = (row.engine, row.flag, row.default, row.version, row.meaning, row.source)
        assert all(text and text == text.strip() for text in told), row
        assert row.meaning.endswith("."), row
        assert row.knob is None or row.knob in knobs, row
        assert row.knob or not row.values, row
    names = [(row.engine, row.flag) for row in ENGINE_KNOBS]
    assert len(set(names)) == len(names)
    assert ENGINES == ("vLLM", "SGLang", "TensorRT-LLM", "llama.cpp", "LMDeploy")


def test_numbers_of_a_default_stand_in_its_words() -> None:
    for row in ENGINE_KNOBS:
        words = f"{row.default} {row.version}"
        numbers = [value for value in row.values if not isinstance(value, bool) and value > 1]
        assert all(f"{value:,}" in words for value in numbers), row


@pytest.mark.parametrize("policy", sorted(FLAGS))
def test_flags_are_those_of_the_presets(policy: str) -> None:
    engine = ENGINE_OF_POLICY[policy]
    for knob, flag in FLAGS[policy].items():
        assert flag in {row.flag for row in chosen_knobs(engine=engine, knob=knob)}, knob


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_defaults_are_those_of_the_presets(name: str) -> None:
    preset = PRESETS[name]
    for knob, flag in FLAGS[preset.policy].items():
        rows = chosen_knobs(engine=ENGINE_OF_POLICY[preset.policy], knob=knob)
        (row,) = [row for row in rows if row.flag == flag]
        value = getattr(preset.limits, knob)
        key = next((key for key in ((preset.policy, knob), (name, knob)) if key in APART), None)
        if key:
            assert value == APART[key]
        elif value is None:
            assert row.values == ()
        else:
            assert value in row.values, (knob, value)


def test_rows_are_chosen_by_engine_and_by_our_knob() -> None:
    assert {row.engine for row in chosen_knobs(knob="token_budget")} == set(ENGINES)
    assert {row.engine for row in chosen_knobs(engine="LMDeploy")} == {"LMDeploy"}
    (both,) = chosen_knobs(engine="llama.cpp", knob="token_budget")
    assert (both.flag, both.also, both.default) == ("-b", "--batch-size", "2,048")
    assert len(chosen_knobs()) == len(ENGINE_KNOBS)


@pytest.mark.parametrize(
    ("engine", "knob", "flag"),
    [
        ("vLLM", "token_budget", "--max-num-batched-tokens"),
        ("SGLang", "chunk_tokens", "--chunked-prefill-size"),
        ("TensorRT-LLM", "chunk_tokens", None),
        ("llama.cpp", "chunk_tokens", None),
        ("LMDeploy", "chunk_tokens", "--max-prefill-token-num"),
        ("llama.cpp", "chunking", None),
    ],
)
def test_flag_of_an_engine(engine: str, knob: str, flag: str | None) -> None:
    assert flag_of(engine, knob) == flag


def test_columns_of_the_csv_have_both_names_and_what_is_open() -> None:
    (row,) = chosen_knobs(engine="llama.cpp", knob="max_seqs")
    columns = knob_columns((row,))
    assert columns["flag"] == ["-np, --parallel"]
    assert columns["s11_knob"] == ["max_seqs"]
    assert columns["not_verified"] == ["how many slots automatic gives"]
    assert len(knob_columns(ENGINE_KNOBS)["engine"]) == len(ENGINE_KNOBS)
