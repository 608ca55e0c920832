"""A report's words and tables, by hand."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import EngineLimits, Experiment, Metrics, Workload, measure, simulate
from s11.policies import POLICIES
from s11.report_contents import LIMITS, SHARES, figure_rows, parameter_rows, run_sentences
from tests.loads import load, random_policy_experiment, request

RANDOM = st.randoms(use_true_random=False)


def measured(experiment: Experiment) -> Metrics:
    return measure(simulate(experiment), itl_target_ms=experiment.itl_target_ms)


def test_the_chapters_figures_with_units() -> None:
    rows = figure_rows(measured(Experiment()))
    for row in (
        ("Longest stall", "23.632", "ms"),
        ("TTFT of the longest prompt", "189.056", "ms"),
        ("Steps over the ITL target", "0", ""),
        ("Steps", "13", ""),
        ("TPOT p50", "none", ""),
        ("SLO attainment: requests within every target", "100.00", "%"),
        ("Computed in prefill", "8,192", "tokens"),
    ):
        assert row in rows
    assert [(name, unit) for name, _, unit in rows if name.endswith("throughput")] == [
        ("Decode throughput", "tokens/s"),
        ("Prefill throughput", "tokens/s"),
        ("Output throughput", "tokens/s"),
    ]


def test_every_figure_has_a_row_and_every_row_its_own_name() -> None:
    rows = figure_rows(measured(Experiment()))
    assert len(rows) == len(fields(Metrics))
    assert len({name for name, _, _ in rows}) == len(rows)
    assert set(SHARES) <= {field.name for field in fields(Metrics)}


@pytest.mark.parametrize("policy", POLICIES)
def test_who_takes_prompts_whole_has_no_chunk_cap(policy: str) -> None:
    """Three schedulers take prompts whole whatever the limits say (Orca, early vLLM, batches)."""
    whole = policy in ("whole_prompt", "request_level", "prefill_first")
    rows = {name: value for name, value, _ in parameter_rows(Experiment(policy=policy))}
    assert rows["Prompts may be cut"] == ("no" if whole else "yes")
    assert ("Chunk cap of one prompt" in rows) == (not whole)


def test_the_chapters_parameters() -> None:
    rows = parameter_rows(Experiment())
    for row in (
        ("Requests", "1", ""),
        ("Prompt: median, p90, longest", "8,192, 8,192, 8,192", "tokens"),
        ("Streaming users", "24", ""),
        ("Scheduler", "Chunked", ""),
        ("Chunk cap of one prompt", "1,024", "tokens"),
        ("Token budget of a step", "no limit", ""),
        ("Prompts may be cut", "yes", ""),
        ("ITL target", "50", "ms"),
    ):
        assert row in rows
    assert not [name for name, _, _ in rows if name.startswith(("TTFT", "Link", "Arrivals"))]


def test_every_limit_is_told() -> None:
    assert set(LIMITS) == {field.name for field in fields(EngineLimits)}


def test_percentiles_and_targets_of_a_load() -> None:
    """Prompts 1 to 10: the fifth of ten is the median, the ninth the p90 (inverted CDF)."""
    ten = [request(str(n), n, arrival_ms=100.5 * n) for n in range(1, 11)]
    rows = parameter_rows(replace(load(*ten), ttft_target_ms=2000.0))
    assert ("Prompt: median, p90, longest", "5, 9, 10", "tokens") in rows
    assert ("Arrivals from first to last", "904.5", "ms") in rows
    assert ("TTFT target", "2,000", "ms") in rows


@settings(max_examples=60)
@given(RANDOM.map(random_policy_experiment))
def test_any_experiment_has_parameters(experiment: Experiment) -> None:
    names = [name for name, _, _ in parameter_rows(experiment)]
    assert len(names) == len(set(names))
    assert ("Link between the workers" in names) == (experiment.policy == "disaggregated")
    assert all(value for _, value, _ in parameter_rows(experiment))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_has_a_name(policy: str) -> None:
    rows = parameter_rows(Experiment(policy=policy))
    assert [value for name, value, _ in rows if name == "Scheduler"] != [policy]


def told(experiment: Experiment, *, max_steps: int = 1_000) -> str:
    result = simulate(experiment, max_steps=max_steps)
    metrics = measure(
        result, itl_target_ms=experiment.itl_target_ms, ttft_target_ms=experiment.ttft_target_ms
    )
    return " ".join(run_sentences(experiment, result, metrics))


def test_sentences_are_true_of_the_run() -> None:
    """One-millisecond steps, tokens of both at 1, 2, 3 ms."""
    both = load(*[request(name, 4, output_tokens=3) for name in "ab"], target_ms=1.0)
    assert told(both) == (
        "2 of 2 requests got all their tokens. The longest stall that anyone saw took 1 ms; of "
        "100 tokens, 99 came within 1 ms of the one before. TTFT was 1 ms at the median and 1 ms "
        "at p99. 100.0% of all requests had an ITL of at most 1 ms throughout."
    )
    late = told(replace(both, ttft_target_ms=0.5))
    assert late.endswith(
        "0.0% of all requests had a TTFT of at most 0.5 ms and an ITL of at most 1 ms throughout."
    )


def test_sentences_of_runs_that_give_little() -> None:
    assert told(Experiment(workload=Workload(requests=()))) == "No request arrives."
    one = told(load(request("a", 3)))
    assert one.startswith("1 of 1 request got all their tokens. Nobody got a second token")
    stuck = told(load(request("a", 9), policy="whole_prompt", budget=5))
    assert stuck.startswith("0 of 1 request got")
    assert "TTFT" not in stuck
    cut = told(load(request("a", 9, output_tokens=9)), max_steps=2)
    assert cut.endswith("The run was cut after 2 steps: its figures are of the part that was run.")
