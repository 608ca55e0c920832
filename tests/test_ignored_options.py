"""Options that do nothing: told of in one line, and no other is."""

import json
from dataclasses import replace
from functools import partial

import pytest

from s11 import simulate
from s11.cli import _parser, main
from s11.commands import experiment_from
from s11.experiment import Experiment
from s11.ignored_options import READERS
from s11.plan import HandOver
from s11.policies import POLICIES
from s11.presets import PRESETS, READS
from tests.command_line import Command, printed
from tests.loads import load, request


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(printed, capsys)


@pytest.fixture
def noted(capsys: pytest.CaptureFixture[str]) -> Command:
    """Read a command's options into an experiment; return what is said on the way."""

    def told(*arguments: str) -> str:
        experiment_from(_parser().parse_args(arguments))
        out, err = capsys.readouterr()
        assert out == ""
        return err

    return told


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (
            "simulate --engine tensorrt-llm --chunk-tokens 1000",
            "chunk_tokens: 1000 does nothing: the engine tensorrt-llm takes prompts whole "
            "(read by tensorrt-llm-chunked)",
        ),
        (
            "simulate --policy whole_prompt --chunk-tokens 9",
            "chunk_tokens: 9 does nothing with the scheduler whole_prompt (read by "
            "chunked, vllm_v1, sglang, tensorrt_llm, slo_adaptive, disaggregated)",
        ),
        (
            "simulate --engine vllm-2k --mixed",
            "mixed: True does nothing with the scheduler vllm_v1 (read by sglang)",
        ),
        ("simulate --policy sglang --align-first-chunk", "align_first_chunk: True does"),
        ("simulate --policy request_level --prefill-interval 2", "prefill_interval: 2 does"),
        ("simulate --kv-bytes-per-token 7", "with the scheduler chunked (read by disagg"),
        ("simulate --link-bytes-per-s 2000", "link_bytes_per_s: 2000.0 does nothing"),
        ("simulate --engine sglang-8k --link-latency-ms 3", "link_latency_ms: 3.0 does"),
        ("capacity --policy prefill_first --chunk-tokens 9", "with the scheduler prefill_first"),
        ("capacity --chunk-sizes 9 --chunk-tokens 9", "9 does nothing beside chunk_sizes"),
        (
            "capacity --engine tensorrt-llm --chunk-sizes 9 --chunk-tokens 9",
            "9 does nothing beside chunk_sizes",
        ),
        ("sweep --chunk-tokens 9 --chunk-tokens-list 9", "beside chunk_tokens_list"),
        ("sweep --token-budget 99 --token-budgets 99", "token_budget: 99 does nothing"),
        ("sweep --policy sglang --policies chunked", "policy: sglang does nothing beside pol"),
        ("sweep --no-chunking --policies chunked,sglang", "no_chunking: True does nothing"),
        ("sweep --mixed --policies chunked,vllm_v1", "with the scheduler chunked, vllm_v1"),
        ("sweep --smallest 9 --token-budgets 99", "smallest: 9 does nothing beside token_b"),
        ("sweep --traffic openchat --rate-per-s 1 --seed 3 --seeds 1", "seed: 3 does nothing"),
    ],
)  # fmt: skip
def test_an_option_that_does_nothing_is_told_of(noted: Command, arguments: str, named: str) -> None:
    said = noted(*arguments.split())
    assert said.startswith("s11: note: ")
    assert named in said
    assert len(said.splitlines()) == 1


def test_a_run_with_such_an_option_is_the_run_without(capsys: pytest.CaptureFixture[str]) -> None:
    plain = ("simulate", "--json", "--prompt-tokens", "99", "--policy", "whole_prompt")
    assert main(plain) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main([*plain, "--chunk-tokens", "9"]) == 0
    out, said = capsys.readouterr()
    assert json.loads(out)["steps"] == expected["steps"]
    assert said.startswith(
        "s11: note: chunk_tokens: 9 does nothing with the scheduler whole_prompt"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "capacity --chunk-sizes 99 --token-budget 99",  # whole prompts keep to the budget
        "sweep --no-chunking --chunk-tokens-list 9",  # with the switch, nothing else is swept
    ],
)
def test_what_does_something_is_not_told_of(noted: Command, arguments: str) -> None:
    assert noted(*arguments.split()) == ""


def test_the_switch_is_no_mistake_beside_a_chunk_size(noted: Command) -> None:
    assert noted("simulate", "--no-chunking", "--chunk-tokens", "9", "--align-first-chunk") == ""


@pytest.mark.parametrize("more", [(), ("--jobs", "2")])
def test_a_sweep_over_chunk_sizes_has_no_use_for_one(
    capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    assert main(["sweep", "--prompt-tokens", "100", "--chunk-tokens", "9", "--csv", *more]) == 0
    out, said = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert said == "s11: note: chunk_tokens: 9 does nothing in a sweep over chunk sizes\n"


@pytest.mark.parametrize("engine", list(PRESETS))
def test_a_chunk_size_changes_every_engine_that_reads_it(
    run: Command, noted: Command, engine: str
) -> None:
    """Chunks of 100 of a prompt of 200: two prefill steps, and no engine's own size is so small."""
    given = ("simulate", "--json", "--engine", engine, "--request", "0:200", "--block-size", "4")
    if engine == "tensorrt-llm":
        assert "does nothing" in noted(*given, "--chunk-tokens", "100")
        return
    assert run(*given, "--chunk-tokens", "100") != run(*given)


def test_a_sweep_takes_what_one_of_its_schedulers_reads(run: Command) -> None:
    short = ("sweep", "--prompt-tokens", "100", "--csv")
    assert run(*short, "--policies", "chunked,sglang", "--mixed").count("\n") == 3
    assert run(*short, "--policies", "whole_prompt,sglang", "--chunk-tokens", "50")


def test_the_readers_of_chunk_sizes_and_mixed_are_those_of_the_pages() -> None:
    for knob in ("chunk_tokens", "mixed"):
        assert set(READERS[knob]) == {policy for policy, reads in READS.items() if knob in reads}


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("option", sorted(set(READERS) - {"chunk_tokens", "mixed"}))
def test_an_option_changes_the_run_of_its_readers_alone(policy: str, option: str) -> None:
    """A budget of 45 cuts the second prompt of 40, which blocks of 16 would cut elsewhere."""
    base = load(
        *(request(f"r{n}", 40, output_tokens=3) for n in range(3)),
        users=0 if policy in ("request_level", "disaggregated") else 2,
        policy=policy,
        chunk=None if policy != "slo_adaptive" else 24,
        budget=60,
        block_size=16,
    )
    limits, way = base.limits, base.hand_over
    changed: Experiment = {
        "align_first_chunk": replace(base, limits=replace(limits, align_first_chunk=True)),
        "prefill_interval": replace(base, limits=replace(limits, prefill_interval=3)),
        "kv_bytes_per_token": replace(base, hand_over=HandOver(kv_bytes_per_token=2**29)),
        "link_bytes_per_s": replace(base, hand_over=HandOver(link_bytes_per_s=1e3)),
        "link_latency_ms": replace(base, hand_over=replace(way, link_latency_ms=50.0)),
    }[option]

    def run_of(experiment: Experiment) -> tuple[list[float], list[int]]:
        result = simulate(experiment)
        return result.steps.end_ms.tolist(), result.prefilling.slices.tokens.tolist()

    assert (run_of(base) != run_of(changed)) == (policy in READERS[option])
