import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment, LinearCost, simulate
from s11.request_metrics import RequestMetrics, attained, request_metrics
from tests.loads import (
    EXPERIMENTS,
    load,
    random_kv_experiment,
    random_policy_experiment,
    request,
    times_ms,
)

RANDOM = st.randoms(use_true_random=False)
ANY_LOAD = st.one_of(
    EXPERIMENTS, RANDOM.map(random_kv_experiment), RANDOM.map(random_policy_experiment)
)


def same(column: Any, expected: Sequence[float] | float) -> bool:
    """Whether a column holds these values to the last bit; NaN equals NaN."""
    return np.array_equal(column, np.array(expected, dtype=np.float64), equal_nan=True)


def test_what_each_request_saw_by_hand() -> None:
    """Cost 1 + 0.5 a prefill token + 0.25 a decode token; one stream decodes in every step.

    a arrives when the lead-in ends, at 1.25 ms; b two milliseconds later, during step 1.
    step 1, from 1.25: a 4       until 4.5: a's first token
    step 2, from 4.5:  a, b 4    until 8.0
    step 3, from 8.0:  a, b 3    until 11.0: a's last token, b's first
    step 4, from 11.0: b         until 12.5: b's last
    """
    cost = LinearCost(fixed_ms=1, prefill_ms_per_token=0.5, decode_ms_per_token=0.25)
    a, b = request("a", 4, output_tokens=3), request("b", 7, output_tokens=2, arrival_ms=2)
    seen = request_metrics(simulate(load(a, b, users=1, lead_in=1, tail=1, chunk=4, cost=cost)))
    assert len(seen) == 2
    assert same(seen.ttft_ms, [4.5 - 1.25, 11.0 - 3.25])
    assert same(seen.scheduling_delay_ms, [0.0, 4.5 - 3.25])
    assert same(seen.longest_itl_ms, [3.5, 1.5])
    assert same(seen.tpot_ms, [(11.0 - 4.5) / 2, 1.5])
    assert same(seen.latency_ms, [11.0 - 1.25, 12.5 - 3.25])
    assert seen.finished.tolist() == [True, True]


def test_who_gets_one_token_has_no_stall_and_no_tpot() -> None:
    seen = request_metrics(simulate(load(request("a", 5))))
    assert same(seen.longest_itl_ms, [math.nan])
    assert same(seen.tpot_ms, [math.nan])
    assert same(seen.latency_ms, [1.0])


def test_who_never_runs_has_nothing() -> None:
    """A budget of 50 and whole prompts: 99 tokens never fit."""
    seen = request_metrics(
        simulate(load(request("a", 99, output_tokens=2), policy="whole_prompt", budget=50))
    )
    assert not seen.finished[0]
    for name, column in seen.columns().items():
        assert name == "finished" or same(column, [math.nan])


def test_a_stall_spans_the_steps_that_a_decode_stood_still_in() -> None:
    """a's tokens come at 1, 2 and, two prefill-only steps later, 5."""
    result = simulate(
        load(
            request("a", 5, output_tokens=3),
            request("b", 5, output_tokens=2, arrival_ms=1.5),
            request("c", 5, output_tokens=2, arrival_ms=1.5),
            policy="prefill_first",
            budget=5,
        )
    )
    assert times_ms(result, "a") == [1, 2, 5]
    assert same(request_metrics(result).longest_itl_ms, [3, 2, 1])


def test_the_wait_after_a_preemption_is_a_stall() -> None:
    """The case kv-decode-evicts-latest: 1's tokens come at 1, 4 (preempted between) and 5."""
    result = simulate(
        load(
            request("0", 80, output_tokens=3),
            request("1", 80, output_tokens=3),
            policy="vllm_v1",
            budget=200,
            block_size=16,
            kv_blocks=10,
        )
    )
    assert len(result.preemptions) == 1
    assert same(request_metrics(result).longest_itl_ms, [1, 3])


def test_of_a_run_that_is_cut_the_tokens_so_far_count() -> None:
    """Four steps of 1 ms, b's prompt in the third of them, then the run stops."""
    result = simulate(
        load(request("a", 1, output_tokens=9), request("b", 1, output_tokens=9, arrival_ms=2)),
        max_steps=4,
    )
    seen = request_metrics(result)
    assert same(seen.longest_itl_ms, [1, 1])
    assert same(seen.ttft_ms, [1, 1])
    assert same(seen.tpot_ms, [math.nan, math.nan])
    assert not seen.finished.any()
    assert not attained(seen, ttft_target_ms=None, itl_target_ms=50).any()


@settings(max_examples=150)
@given(ANY_LOAD)
def test_every_column_is_that_of_each_requests_own_token_times(experiment: Experiment) -> None:
    """All times are short binary fractions, so that both ways agree to the last bit."""
    result = simulate(experiment)
    requests, seen = result.requests, request_metrics(result)
    assert len(seen) == len(requests)
    for row in range(len(requests)):
        times = result.token_times_ms(row)
        complete = len(times) == requests.output_tokens[row]
        gaps = np.diff(times)
        first_ms = times[0] if len(times) else math.nan
        last_ms = times[-1] if complete else math.nan
        arrival_ms = requests.arrival_ms[row]
        assert same(seen.longest_itl_ms[row], gaps.max() if len(gaps) else math.nan)
        assert same(seen.ttft_ms[row], first_ms - arrival_ms)
        assert same(seen.latency_ms[row], last_ms - arrival_ms)
        tpot_ms = (last_ms - first_ms) / len(gaps) if complete and len(gaps) else math.nan
        assert same(seen.tpot_ms[row], tpot_ms)
        assert seen.finished[row] == complete
        waited = requests.first_scheduled_ms[row] - arrival_ms
        assert same(seen.scheduling_delay_ms[row], waited)
        assert not seen.scheduling_delay_ms[row] < 0


def metrics_of(*rows: tuple[float, float, bool]) -> RequestMetrics:
    """Requests of so much TTFT and so long a stall, finished or not."""
    ttft, stall, finished = (np.array(column) for column in zip(*rows, strict=True))
    return RequestMetrics(
        ttft_ms=ttft.astype(float),
        scheduling_delay_ms=ttft.astype(float),
        longest_itl_ms=stall.astype(float),
        tpot_ms=stall.astype(float),
        latency_ms=ttft + stall,
        finished=finished,
    )


def test_who_meets_the_targets() -> None:
    """In order: both at their targets; TTFT over; stall over; one token only; never ended."""
    seen = metrics_of(
        (200, 50, True),
        (200.5, 50, True),
        (200, 50.5, True),
        (100, math.nan, True),
        (100, 10, False),
        (math.nan, math.nan, False),
    )
    both = attained(seen, ttft_target_ms=200, itl_target_ms=50)
    assert both.tolist() == [True, False, False, True, False, False]
    without = attained(seen, ttft_target_ms=None, itl_target_ms=50)
    assert without.tolist() == [True, True, False, True, False, False]


@pytest.mark.parametrize("target", [0, -1, math.nan, math.inf, 2e6])
def test_a_target_out_of_range_is_refused(target: float) -> None:
    seen = metrics_of((1, 1, True))
    with pytest.raises(ValueError, match=r"^itl_target_ms: .* is not a number above 0 to 1e\+06$"):
        attained(seen, ttft_target_ms=None, itl_target_ms=target)
    with pytest.raises(ValueError, match=r"^ttft_target_ms: .* is not a number above 0 to"):
        attained(seen, ttft_target_ms=target, itl_target_ms=1)


def test_columns_are_read_only_and_make_a_data_frame() -> None:
    seen = metrics_of((1, 2, True), (3, math.nan, True))
    with pytest.raises(ValueError, match="read-only"):
        seen.ttft_ms[0] = 5
    frame = seen.to_pandas()
    assert list(frame) == list(seen.columns())
    assert frame["ttft_ms"].tolist() == [1, 3]


def test_without_requests_every_column_is_empty() -> None:
    seen = request_metrics(simulate(load(users=2, lead_in=3)))
    assert len(seen) == 0
    assert {len(column) for column in seen.columns().values()} == {0}
    assert attained(seen, ttft_target_ms=1, itl_target_ms=1).tolist() == []
