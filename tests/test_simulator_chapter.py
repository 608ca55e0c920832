"""The chapter's scenario to the digit: a step is 4.0 + 0.018 a prefill + 0.05 a decode token."""

import pytest

from s11 import EngineLimits, Experiment, Metrics, Result, chapter_scenario, measure, simulate

DECODE_ONLY_MS = 5.2  # 4.0 + 24 * 0.05
CHUNK_MS = 23.632  # 4.0 + 1024 * 0.018 + 24 * 0.05 = 4.0 + 18.432 + 1.2
WHOLE_MS = 152.656  # 4.0 + 8192 * 0.018 + 24 * 0.05 = 4.0 + 147.456 + 1.2


def chapter(**changes: int) -> Experiment:
    return Experiment(workload=chapter_scenario(**changes))


def run(experiment: Experiment) -> tuple[Result, Metrics]:
    result = simulate(experiment)
    return result, measure(result, itl_target_ms=experiment.itl_target_ms)


def exactly(value: float) -> object:
    return pytest.approx(value, abs=1e-9, rel=0)


def tables(result: Result) -> list[list[float]]:
    tables = (result.steps, result.slices)
    return [column.tolist() for table in tables for column in table.columns().values()]


def test_chunked() -> None:
    result, metrics = run(Experiment())
    assert metrics.longest_stall_ms == exactly(CHUNK_MS)
    assert metrics.ttft_ms == exactly(189.056)  # 8 * 23.632
    assert metrics.steps_over_target == 0
    assert metrics.step_count == 13  # 2 + 8192 / 1024 + 3
    assert metrics.makespan_ms == exactly(215.056)  # 5 * 5.2 + 189.056
    # 13 steps of 24 tokens in 215.056 ms: 312 / 0.215056 s = 1450.785 (the chapter: 1450.77)
    assert metrics.decode_tokens_per_s == exactly(312 / 0.215056)
    assert metrics.decode_tokens_per_s == pytest.approx(1450.77, abs=0.02)
    assert result.steps.duration_ms.tolist() == [
        exactly(ms) for ms in [DECODE_ONLY_MS] * 2 + [CHUNK_MS] * 8 + [DECODE_ONLY_MS] * 3
    ]
    # ITLs: 120 tokens after 5.2 ms and 192 after 23.632 ms; the 156th of 312 is of the latter.
    assert (metrics.itl_p50_ms, metrics.itl_p99_ms) == (exactly(CHUNK_MS), exactly(CHUNK_MS))
    assert metrics.itl_mean_ms == exactly((120 * DECODE_ONLY_MS + 192 * CHUNK_MS) / 312)


def test_chunking_off() -> None:
    result, metrics = run(Experiment().chunking_off())
    assert metrics.longest_stall_ms == exactly(WHOLE_MS)
    assert metrics.ttft_ms == exactly(WHOLE_MS)
    assert metrics.steps_over_target == 1
    assert metrics.step_count == 6  # 2 + 1 + 3
    # 6 steps of 24 tokens in 5 * 5.2 + 152.656 = 178.656 ms: 144 / 0.178656 s = 806.0
    assert metrics.decode_tokens_per_s == exactly(144 / 0.178656)
    assert metrics.decode_tokens_per_s == pytest.approx(806.0, abs=0.05)
    # 120 of 144 gaps are 5.2 ms: the 72nd is of these, the 143rd (99 % of 144 is 142.56) is not.
    assert (metrics.itl_p50_ms, metrics.itl_p99_ms) == (exactly(DECODE_ONLY_MS), exactly(WHOLE_MS))
    assert result.slices.tokens.tolist() == [8192]


def test_at_32768_tokens_chunking_lowers_the_longest_stall_25_times() -> None:
    experiment = chapter(prompt_tokens=32_768)
    _, chunked = run(experiment)
    _, whole = run(experiment.chunking_off())
    assert whole.longest_stall_ms == exactly(595.024)  # 4 + 32768 * 0.018 + 1.2 = 4 + 589.824 + 1.2
    assert chunked.longest_stall_ms == exactly(CHUNK_MS)
    assert whole.longest_stall_ms is not None
    assert chunked.longest_stall_ms is not None
    assert round(whole.longest_stall_ms / chunked.longest_stall_ms, 2) == 25.18


@pytest.mark.parametrize("chunk_tokens", [8192, 8193, 100_000])
def test_a_chunk_that_holds_the_prompt_is_chunking_off_step_for_step(chunk_tokens: int) -> None:
    result, metrics = run(Experiment().with_chunk_tokens(chunk_tokens))
    whole, whole_metrics = run(Experiment().chunking_off())
    assert tables(result) == tables(whole)
    assert metrics == whole_metrics


def test_the_last_of_1000_token_chunks_holds_192_tokens() -> None:
    result, _ = run(Experiment().with_chunk_tokens(1000))
    assert result.slices.tokens.tolist() == [1000] * 8 + [192]
    assert result.slices.start_token.tolist() == [1000 * n for n in range(9)]
    assert result.steps.duration_ms[10] == exactly(8.656)  # 4 + 192 * 0.018 + 1.2


def test_the_prompt_arrives_exactly_when_the_lead_in_ends() -> None:
    result, _ = run(Experiment())
    assert result.requests.arrival_ms[0] == result.steps.end_ms[1] == exactly(2 * DECODE_ONLY_MS)
    assert result.requests.first_scheduled_ms[0] == result.requests.arrival_ms[0]


@pytest.mark.parametrize("chunked", [True, False])
def test_with_nobody_streaming_there_is_no_stall_and_no_lead_in_or_tail(chunked: bool) -> None:
    experiment = chapter(prompt_tokens=2048, streaming_users=0)
    _, metrics = run(experiment if chunked else experiment.chunking_off())
    assert metrics.longest_stall_ms is None
    assert metrics.itl_p99_ms is None
    assert metrics.decode_tokens_per_s == 0
    # Two steps of 4 + 1024 * 0.018 = 22.432 ms, or one of 4 + 2048 * 0.018 = 40.864 ms.
    assert metrics.ttft_ms == exactly(2 * 22.432 if chunked else 40.864)
    assert metrics.makespan_ms == metrics.ttft_ms


@pytest.mark.parametrize("chunked", [True, False])
def test_a_one_token_prompt(chunked: bool) -> None:
    experiment = chapter(prompt_tokens=1)
    _, metrics = run(experiment if chunked else experiment.chunking_off())
    assert metrics.step_count == 6
    assert metrics.ttft_ms == exactly(5.218)  # 4 + 0.018 + 1.2
    assert metrics.longest_stall_ms == exactly(5.218)


@pytest.mark.parametrize(("max_steps", "steps"), [(12, 12), (13, 13), (14, 13)])
def test_cut_before_at_and_after_its_natural_end(max_steps: int, steps: int) -> None:
    result = simulate(Experiment(), max_steps=max_steps)
    assert len(result.steps) == steps
    assert result.stopped_at_max_steps == (steps < 13)


def test_chunking_off_never_schedules_a_prompt_longer_than_the_budget() -> None:
    experiment = Experiment(
        workload=chapter_scenario(prompt_tokens=32_768),
        policy="whole_prompt",
        limits=EngineLimits(token_budget=8192),
    )
    result, metrics = run(experiment)
    assert result.never_scheduled == ("long",)
    assert result.never_scheduled_because == "chunking off"
    assert not result.stopped_at_max_steps
    assert metrics.ttft_ms is None
    assert metrics.finished_requests == 0
    assert result.steps.duration_ms.tolist() == [exactly(DECODE_ONLY_MS)] * 5


def test_a_budget_is_shared_between_decodes_and_the_chunk() -> None:
    """Budget 1024: 24 decodes leave 1,000 tokens, so 8,192 take nine steps."""
    experiment = Experiment(limits=EngineLimits(token_budget=1024, chunk_tokens=None))
    result, metrics = run(experiment)
    assert result.slices.tokens.tolist() == [1000] * 8 + [192]
    assert metrics.longest_stall_ms == exactly(23.2)  # 4 + 18 + 1.2


def test_as_the_readme_of_the_package_shows_it() -> None:
    result, metrics = run(chapter(prompt_tokens=32_768))
    frame = result.steps.to_pandas()
    assert len(frame) == metrics.step_count == 37  # 2 + 32 + 3
    assert frame["prefill_tokens"].sum() == 32_768
