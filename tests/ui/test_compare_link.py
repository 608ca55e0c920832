"""The compare page's link and table: texts to values and back, and what is refused."""

import math
from dataclasses import replace
from typing import Any

import pytest

from s11 import EngineLimits, Request
from s11.entries import Entry
from s11.scenes import SCENES
from s11.ui.compare_link import (
    COMMON_KNOBS,
    LINK_CHECKS,
    Asked,
    entries_from,
    entry_from,
    entry_text,
    from_link,
    to_link,
    value_from,
)
from s11.ui.compare_requests import requests_from, requests_of, requests_text, row_of

DEFAULT = next(iter(SCENES))
PLAIN = Asked.of_scene(DEFAULT)


def row(**changes: Any) -> dict[str, Any]:
    first = {"name": "A", "arrival_ms": 0.0, "prompt_tokens": 4, "output_tokens": 2}
    return first | {"shared_group": None, "shared_tokens": None} | changes


@pytest.mark.parametrize("slug", SCENES)
def test_scene_as_it_comes_is_a_short_link(slug: str):
    asked = Asked.of_scene(slug)
    assert to_link(asked) == ({} if slug == DEFAULT else {"scene": slug})
    assert from_link(to_link(asked)) == asked
    assert asked.common() == SCENES[slug].common


def test_changed_scene_comes_back_from_its_link():
    requests = (
        Request(request_id="A b", prompt_tokens=9, output_tokens=3, arrival_ms=0.25),
        Request(request_id="C", prompt_tokens=9, shared_group="g", shared_tokens=8),
    )
    asked = replace(
        PLAIN,
        entries=(Entry(engine="sglang").changed(mixed=True), Entry(engine="vllm-2k")),
        rows=tuple(row_of(request) for request in requests),
        limits=EngineLimits(
            token_budget=None,
            chunk_tokens=77,
            max_seqs=3,
            kv_blocks=None,
            block_size=32,
            prefill_interval=2,
            prefix_caching=True,
            reserve_full_prompt=True,
        ),
        cost=replace(PLAIN.cost, fixed_ms=1.5),
        itl_target_ms=12.5,
    )
    link = to_link(asked)
    assert link == {
        "engines": "sglang~mixed-on~~vllm-2k",
        "requests": "A b~0.25~9~3~~C~0~9~1~g~8",
        "budget": "none",
        "cap": "77",
        "seats": "3",
        "blocks": "none",
        "block": "32",
        "interval": "2",
        "caching": "on",
        "reserve": "on",
        "target": "12.5",
        "fixed": "1.5",
    }
    for name, text in link.items():
        LINK_CHECKS[name](text)
    assert from_link(link) == asked


def test_table_that_is_none_is_not_written():
    assert to_link(replace(PLAIN, rows=(row(prompt_tokens=None),))) == {}


def test_every_common_knob_is_a_parameter():
    assert len({*LINK_CHECKS}) == len(LINK_CHECKS) == len(COMMON_KNOBS) + 8


@pytest.mark.parametrize(
    "entry",
    [
        Entry(engine="vllm_v1"),
        Entry(engine="vllm_v1").changed(chunk_tokens=None, prefix_caching=False),
        Entry(engine="tensorrt-llm-chunked").changed(token_budget=1),
    ],
)
def test_entry_as_text_and_back(entry: Entry):
    assert entry_from(entry_text(entry)) == entry


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "engine: '' is not one of"),
        ("orca", "engine: 'orca' is not one of"),
        ("chunked~speed-3", "knob: 'speed' is not one of"),
        ("chunked~budget-0", "0 is not a whole number from 1"),
        ("chunked~budget-", "'' is not a whole number"),
        ("chunked~caching-yes", "'yes' is not one of on, off"),
        ("chunked~block-none", "'none' is not a whole number"),
        ("chunked~cap-1~cap-2", "given twice"),
        ("chunked~~chunked", "one is given twice"),
        ("chunked~~sglang~~vllm_v1~~whole_prompt~~request_level", "5 is not a whole number"),
        ("x" * 5000, "5,000 letters are more than 3,000"),
    ],
)
def test_engines_that_are_none_are_refused(text: str, said: str):
    with pytest.raises(ValueError, match=said):
        entries_from(text)


def test_value_of_every_kind():
    assert value_from("token_budget", "none") is None
    assert value_from("prefix_caching", "off") is False
    assert value_from("block_size", "16") == 16


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "row 1 has 1 fields"),
        ("A~0~4", "row 1 has 3 fields"),
        ("A~0~4~1~g", "row 1 has 5 fields"),
        ("A~0~4~1~~B~0~0~1", r"row 2 \(B\), prompt_tokens: 0 is not a whole number from 1 to"),
        ("A~-1~4~1", "arrival_ms: -1.0 is not a number from 0"),
        ("A~nan~4~1", "arrival_ms"),
        ("A~inf~4~1", "arrival_ms: inf"),
        ("A~x~4~1", "arrival_ms: 'x'"),
        ("A~0~1e9~1", "prompt_tokens: '1e9'"),
        ("A~0~4~99999", "output_tokens: 99999 is not a whole number from 1 to 10,000"),
        ("A~0~4~1~~A~0~4~1", "'A' is used twice"),
        ("~~".join(f"r{n}~0~4~1" for n in range(25)), "25 is not a whole number from 1 to 24"),
        ("A~0~4~1~g~5", "shared_tokens: 5 is not a whole number from 0 to 4"),
        ("a" * 25 + "~0~4~1", "name: 'aaaa"),
        ("9" * 5000, "letters are more than 3,000"),
    ],
)
def test_requests_that_are_none_are_refused(text: str, said: str):
    with pytest.raises(ValueError, match=said):
        requests_from(text)


def test_requests_as_text_and_back():
    requests = requests_from("A~0.5~4~1~~B~2~8~3~g~8")
    assert requests == (
        Request(request_id="A", prompt_tokens=4, arrival_ms=0.5),
        Request(
            request_id="B",
            prompt_tokens=8,
            output_tokens=3,
            arrival_ms=2.0,
            shared_group="g",
            shared_tokens=8,
        ),
    )
    assert requests_text(requests) == "A~0.5~4~1~~B~2~8~3~g~8"


def test_rows_of_an_editor_are_read_with_their_missing_cells_and_floats():
    (request,) = requests_of(
        [row(prompt_tokens=4.0, shared_group=math.nan, shared_tokens=math.nan, arrival_ms=3)]
    )
    assert request == Request(request_id="A", prompt_tokens=4, output_tokens=2, arrival_ms=3.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "row 1, name: '' is not a text of 1 to 24 letters"),
        ({"name": "a~b"}, "without ~"),
        ({"prompt_tokens": None}, r"row 1 \(A\), prompt_tokens: None is not a whole number"),
        ({"prompt_tokens": 2.5}, "prompt_tokens: 2.5 is not a whole number from 1 to 1,000,000"),
        ({"output_tokens": 0}, "output_tokens: 0"),
        ({"arrival_ms": 1e9}, "arrival_ms: 1000000000.0 is not a number from 0 to 600000"),
        ({"shared_group": "g"}, "shared_tokens: 0 does not go with shared_group 'g'"),
        ({"shared_tokens": 2}, "shared_tokens: 2 does not go with shared_group None"),
        ({"shared_group": "g~h", "shared_tokens": 2}, "shared_group: 'g~h'"),
    ],
)
def test_row_that_is_none_is_named(changes: dict[str, Any], said: str):
    with pytest.raises(ValueError, match=said):
        requests_of([row(**changes)])


def test_table_holds_one_to_24_requests():
    for rows in ([], [row(name=f"r{number}") for number in range(25)]):
        with pytest.raises(ValueError, match=r"requests: .* from 1 to 24"):
            requests_of(rows)
