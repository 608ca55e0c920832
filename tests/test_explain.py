"""Each verdict once, with figures worked out by hand; then: no figure that is not true."""

import re

import pytest
from hypothesis import given, settings

from s11 import (
    EngineLimits,
    Experiment,
    LinearCost,
    Metrics,
    Request,
    Workload,
    chapter_scenario,
    measure,
    simulate,
)
from s11.explain import explain
from s11.simulator import DEFAULT_MAX_STEPS
from s11.sweeps import sweep_chunk_sizes
from s11.trade_off import trade_off
from s11.verdict import Explanation, Verdict
from s11.words import count, ms, times
from tests.loads import EXPERIMENTS, load, request


def figures(experiment: Experiment) -> Metrics:
    return measure(simulate(experiment), itl_target_ms=experiment.itl_target_ms)


def explained(experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS) -> Explanation:
    result = simulate(experiment, max_steps=max_steps)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    return explain(experiment, result, metrics, whole=figures(experiment.chunking_off()))


def says(made: Explanation, verdict: Verdict, *parts: str) -> bool:
    assert made.verdict is verdict
    assert all(part in made.sentence for part in parts), made.sentence
    return True


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (0.0449, "0.0449 ms"),
        (23.632, "23.6 ms"),
        (99.94, "99.9 ms"),
        (152.656, "153 ms"),
        (1254.6, "1,255 ms"),
    ],
)
def test_milliseconds_as_people_read_them(value: float | None, text: str) -> None:
    assert ms(value) == text


def test_counts_and_factors_as_people_read_them() -> None:
    assert [count(n, "step") for n in (0, 1, 2, 1024)] == [
        "0 steps",
        "1 step",
        "2 steps",
        "1,024 steps",
    ]
    assert [times(f) for f in (6.46, 25.18, 1234.5)] == ["6.5×", "25×", "1,234×"]


def test_smooth() -> None:
    """8 chunks of 23.632 ms; off: 152.656 ms, 6.5 times; TTFT 189.056 - 152.656 = 36.4 ms more."""
    parts = ("8 prefill steps", "1,024", "24 users", "23.6 ms", "6.5×", "153 ms", "36.4 ms")
    assert says(explained(Experiment()), Verdict.SMOOTH, *parts)


def test_smooth_in_one_step() -> None:
    """1,000 tokens beside 24 users: 4 + 18 + 1.2 = 23.2 ms in one step."""
    short = Experiment(workload=chapter_scenario(prompt_tokens=1000))
    same = "this is the same as chunking off"
    assert says(explained(short), Verdict.SMOOTH, "whole prompt", "23.2 ms", "50", same)
    assert "same as" not in explained(short.chunking_off()).sentence


def test_stall_of_one_whole_prompt() -> None:
    """152.656 ms against a target of 50 ms: 3.1 times."""
    made = explained(Experiment().chunking_off())
    assert says(made, Verdict.STALL, "One step", "8,192", "24 streams", "153 ms", "3.1×")
    assert "153 ms" in made.headline
    assert "same as" not in made.sentence


@pytest.mark.parametrize(
    ("chunk_tokens", "relation"), [(8192, "equals"), (9000, "is not smaller than")]
)
def test_stall_with_a_chunk_that_holds_the_prompt(chunk_tokens: int, relation: str) -> None:
    made = explained(Experiment().with_chunk_tokens(chunk_tokens))
    same = f"The chunk {relation} the prompt, so this is the same as chunking off."
    assert says(made, Verdict.STALL, "153 ms", same)


def test_stall_in_several_steps() -> None:
    """Chunks of 4,000: 4 + 72 + 1.2 = 77.2 ms, twice; the 192 that remain take 8.656 ms."""
    made = explained(Experiment().with_chunk_tokens(4000))
    assert says(made, Verdict.STALL, "2 steps of 8 are over", "50", "77.2 ms")
    assert "same as" not in made.sentence


def test_a_target_that_decodes_alone_exceed() -> None:
    """1,000 users: 4 + 50 = 54 ms without any prefill."""
    crowd = Experiment(workload=chapter_scenario(streaming_users=1000))
    assert says(explained(crowd), Verdict.TARGET_OUT_OF_REACH, "only decodes", "54", "50")


def test_nobody_streams() -> None:
    """8 chunks of 4 + 18.432 ms take 179.456 ms; one step takes 4 + 147.456 = 151.456 ms."""
    made = explained(Experiment(workload=chapter_scenario(streaming_users=0)))
    assert says(made, Verdict.NOBODY_STREAMS, "8 steps", "179 ms", "151 ms")


def test_nobody_streams_and_one_step_could_not_hold_the_prompt() -> None:
    limits = EngineLimits(token_budget=1000)
    made = explained(Experiment(workload=chapter_scenario(streaming_users=0), limits=limits))
    assert made.verdict is Verdict.NOBODY_STREAMS
    assert "none" not in made.sentence


def test_nobody_streams_and_there_are_two_prompts() -> None:
    """One seat, chunks of five: each prompt takes two steps."""
    made = explained(load(request("a", 10), request("b", 10), chunk=5, seats=1))
    assert made.verdict is Verdict.NOBODY_STREAMS
    assert "prompt takes 4 steps" not in made.sentence


def test_no_request() -> None:
    assert says(explained(load(users=2, tail=1)), Verdict.NO_REQUEST)


def test_never_scheduled_for_want_of_budget() -> None:
    long = chapter_scenario(prompt_tokens=32_768)
    limits = EngineLimits(token_budget=8192)
    made = explained(Experiment(workload=long, policy="whole_prompt", limits=limits))
    assert says(made, Verdict.NEVER_SCHEDULED, "chunking off", "32,768", "8,192")
    assert "32,768" in made.headline


def test_never_scheduled_beside_streams_that_take_the_budget() -> None:
    made = explained(Experiment(limits=EngineLimits(token_budget=24)))
    assert says(made, Verdict.NEVER_SCHEDULED, "24 running decodes", "24 tokens a step")


def test_never_scheduled_for_want_of_a_seat() -> None:
    made = explained(Experiment(limits=EngineLimits(max_seqs=24)))
    assert says(made, Verdict.NEVER_SCHEDULED, "24 streaming users", "24 seats")


@pytest.mark.parametrize(
    ("behind", "text"),
    [(0, ""), (1, " 1 request behind it waits"), (2, " 2 requests behind it wait ")],
)
def test_never_scheduled_counts_who_waits_behind(behind: int, text: str) -> None:
    line = [request(f"r{n}", 9) for n in range(behind + 1)]
    made = explained(load(*line, policy="whole_prompt", budget=5))
    assert says(made, Verdict.NEVER_SCHEDULED, text)
    assert ("behind" in made.sentence) == bool(behind)


def test_stopped() -> None:
    assert says(explained(Experiment(), max_steps=7), Verdict.STOPPED, "7 steps")


COST_A_TOKEN = LinearCost(fixed_ms=1, prefill_ms_per_token=1, decode_ms_per_token=0)


def test_the_step_that_holds_the_prompt_is_the_one_named() -> None:
    """Nobody else streams: the prompt takes 101 ms, and its own decodes 1 ms each."""
    made = explained(load(request("a", 100, output_tokens=3), cost=COST_A_TOKEN))
    assert "one step of 1 ms" not in made.sentence.replace("1.0 ms", "1 ms")


def test_the_longest_of_the_steps_over_the_target_is_the_longest() -> None:
    """500 tokens alone: 501 ms. Then 80 beside a decode: 81 ms, the longest stall."""
    line = load(
        request("a", 500, output_tokens=2),
        request("b", 80, arrival_ms=1),
        policy="whole_prompt",
        cost=COST_A_TOKEN,
    )
    made = explained(line)
    assert says(made, Verdict.STALL, "2 steps of 2 are over the target")
    assert "the longest that a stream waits for is 81 ms" in made.sentence


@pytest.mark.parametrize("users", [0, 24])
@pytest.mark.parametrize("chunk_tokens", [512, 4_096, 8_192])
def test_held_against_nothing_it_names_no_figure_of_chunking_off(users, chunk_tokens) -> None:
    workload = chapter_scenario(prompt_tokens=8_192, streaming_users=users)
    limits = EngineLimits(chunk_tokens=chunk_tokens)
    experiment = Experiment(workload=workload, limits=limits, cost=LinearCost())
    result, metrics = simulate(experiment), figures(experiment)
    made = explain(experiment, result, metrics, whole=None)
    held = explain(experiment, result, metrics, whole=figures(experiment.chunking_off()))
    assert (made.verdict, made.headline) == (held.verdict, held.headline)
    assert not re.search("than the|with chunking off it|of chunking off|only costs", made.sentence)


FIGURE = re.compile(r"([\d,]*\.?\d+(?:e-\d+)?) ms")


@settings(max_examples=150)
@given(EXPERIMENTS)
def test_every_millisecond_named_is_one_of_the_runs(experiment: Experiment) -> None:
    result, metrics = simulate(experiment), figures(experiment)
    whole = figures(experiment.chunking_off())
    made = explain(experiment, result, metrics, whole=whole)
    users = experiment.workload.streaming_users
    least_ms = experiment.cost.step_ms(prefill_tokens=0, decode_tokens=users)
    true: list[float | None] = [experiment.itl_target_ms, least_ms]
    for each in (metrics, whole):
        true += [each.longest_stall_ms, each.ttft_ms]
    if metrics.ttft_ms and whole.ttft_ms:
        true.append(metrics.ttft_ms - whole.ttft_ms)
    for text in FIGURE.findall(made.headline + " " + made.sentence):
        shown, slack = float(text.replace(",", "")), 0.051 if "." in text else 0.51
        assert any(t is not None and abs(shown - t) <= slack for t in true)


@settings(max_examples=150)
@given(EXPERIMENTS)
def test_the_verdict_follows_from_the_figures(experiment: Experiment) -> None:
    result, metrics = simulate(experiment), figures(experiment)
    verdict = explained(experiment).verdict
    stall_ms = metrics.longest_stall_ms
    assert (verdict is Verdict.NO_REQUEST) == (not experiment.workload.requests)
    if verdict is Verdict.NO_REQUEST:
        return
    assert (verdict is Verdict.NEVER_SCHEDULED) == bool(result.never_scheduled)
    if verdict is Verdict.NEVER_SCHEDULED:
        return
    assert (verdict is Verdict.NOBODY_STREAMS) == (stall_ms is None)
    stalls = stall_ms is not None and stall_ms > experiment.itl_target_ms
    assert (verdict in (Verdict.STALL, Verdict.TARGET_OUT_OF_REACH)) == stalls


def test_the_trade_off_has_this_scenarios_figures() -> None:
    """512: 4 + 9.216 + 1.2 = 14.416 ms, sixteen times 230.656; 2,048: 42.064 ms, 168.256."""
    smaller, larger = sweep_chunk_sizes(Experiment(), [512, 2048])
    text = trade_off(smaller, larger)
    for part in ("512 tokens: longest stall 14.4 ms, TTFT 231 ms", "2,048 tokens", "42.1 ms"):
        assert part in text
    assert "168 ms" in text
    assert trade_off(None, None) == ""
    assert "Larger" not in trade_off(smaller, None)
    assert "Smaller" not in trade_off(None, larger)


def test_a_batch_that_never_ends_lets_nobody_in() -> None:
    made = explained(Experiment(policy="request_level"))
    assert says(made, Verdict.NEVER_SCHEDULED, "while a batch runs", "24 streaming users")


def test_no_token_fits_within_the_target() -> None:
    """A decode step of 24 users takes 5.2 ms, one prompt token more 5.218."""
    made = explained(Experiment(policy="slo_adaptive", itl_target_ms=5.21))
    assert says(made, Verdict.NEVER_SCHEDULED, "not one prompt token fits", "5.2 ms")


def test_decodes_that_fill_a_mixed_step_or_leave_less_than_a_block() -> None:
    full = EngineLimits(chunk_tokens=24, mixed=True)
    made = explained(Experiment(policy="sglang", limits=full))
    assert says(made, Verdict.NEVER_SCHEDULED, "24 running decodes take all of the 24 tokens")
    less = EngineLimits(chunk_tokens=30, mixed=True)
    made = explained(Experiment(policy="sglang", limits=less))
    assert says(made, Verdict.NEVER_SCHEDULED, "less of a step than one block of 16 tokens")


def test_a_prompt_larger_than_the_pool_never_runs_where_it_is_taken_whole() -> None:
    """8,192 tokens are 512 blocks of 16."""
    limits = EngineLimits(chunk_tokens=None, kv_blocks=511)
    made = explained(Experiment(limits=limits))
    assert says(made, Verdict.NEVER_SCHEDULED, "more than the 511 KV blocks of 16 tokens")


def test_a_request_that_outgrows_the_pool_never_finishes() -> None:
    """Chunks of 1,024 fill 64 blocks each, so 511 hold seven of eight; then it begins anew."""
    limits = EngineLimits(kv_blocks=511)
    made = explained(Experiment(limits=limits))
    parts = ("long grows to 8,192 tokens, 512 KV blocks", "pool has 511", "for ever")
    assert says(made, Verdict.NEVER_FINISHED, *parts)
    assert made.headline == "long never finishes"


def test_prompts_by_themselves_freeze_the_streams() -> None:
    """Eight chunks of 22.432 ms, then the decode step of 5.2: 184.656 ms, 3.7 times 50."""
    made = explained(Experiment(policy="sglang"))
    parts = ("For 8 steps in a row", "all 24 streams wait 185 ms", "3.7×")
    assert says(made, Verdict.STALL, *parts)
    made = explained(Experiment(policy="prefill_first"))
    assert says(made, Verdict.STALL, "For one step", "157 ms")


def test_two_workers_are_told_of_as_two() -> None:
    """131,072 bytes a token over 50 GB/s, and 1 ms: 22.5 ms."""
    made = explained(Experiment(policy="disaggregated"))
    parts = ("Another worker prefills, in 8 steps", "travels 22.5 ms", "5.2 ms")
    assert says(made, Verdict.SMOOTH, *parts)


def test_what_memory_did_is_told() -> None:
    """kv-decode-evicts-latest: 1 is preempted once. And of a, b finds one block of four."""
    pressed = load(
        *(request(name, 80, output_tokens=3) for name in "01"),
        policy="vllm_v1",
        budget=200,
        kv_blocks=10,
    )
    assert "1 preemption, after each of which" in explained(pressed).sentence
    shared = tuple(
        Request(request_id=name, prompt_tokens=6, shared_group="g", shared_tokens=5)
        for name in "ab"
    )
    limits = EngineLimits(block_size=4, prefix_caching=True)
    cached = Experiment(workload=Workload(requests=shared), policy="vllm_v1", limits=limits)
    assert "The prefix cache held 4 prompt tokens." in explained(cached).sentence


def test_what_is_longer_than_the_model_allows_is_refused() -> None:
    made = explained(Experiment(limits=EngineLimits(max_model_len=8191)))
    assert says(made, Verdict.REFUSED, "maximum length of 8,191 tokens")
    assert made.headline == "The 8,192-token prompt is refused"
    two = load(request("a", 9), request("b", 3), max_model_len=5)
    assert "1 request was refused" in explained(two).sentence
    both = load(request("a", 9), request("b", 8), max_model_len=5)
    assert explained(both).headline == "All 2 prompts are refused"


def test_reasons_name_what_is_really_short() -> None:
    """Seats that the budget allows; a chunk that is less than a block, with users and without."""
    made = explained(Experiment(policy="prefill_first", limits=EngineLimits(token_budget=24)))
    assert says(made, Verdict.NEVER_SCHEDULED, "24 seats that the token budget allows")
    for policy in ("sglang", "tensorrt_llm"):
        made = explained(Experiment(policy=policy, limits=EngineLimits(chunk_tokens=8)))
        expected = "a chunk of at most 8 tokens is less than one block of 16 tokens"
        assert says(made, Verdict.NEVER_SCHEDULED, expected)
