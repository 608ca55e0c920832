import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from s11 import Experiment, simulate
from s11.bench_results import BenchResults, read_bench_results
from s11.metrics import inter_token_gaps
from s11.plan import EngineLimits
from s11.replay import first_requests, lay_over, of_rows, replay

# Four requests of 2 tokens, sent at 0, 1, 2 and 3 s, each under way for 1.5 s: two at a time.
RUN: dict[str, Any] = {
    "input_lens": [100, 200, 300, 400],
    "output_lens": [2, 2, 2, 2],
    "ttfts": [1.0, 1.0, 1.0, 1.0],
    "itls": [[0.5], [0.5], [0.5], [0.5]],
    "start_times": [50.0, 51.0, 52.0, 53.0],
    "request_rate": "inf",
    "max_concurrency": None,
}


def results_of(**changed: Any) -> BenchResults:
    return read_bench_results(json.dumps(RUN | changed))


def sent(results: BenchResults) -> dict[str, tuple[float, str | None]]:
    return {r.request_id: (r.arrival_ms, r.after) for r in replay(results).workload.requests}


def test_arrivals_of_the_file_are_replayed() -> None:
    how = replay(results_of())
    assert sent(results_of()) == {
        "0": (0, None), "1": (1000, None), "2": (2000, None), "3": (3000, None),
    }  # fmt: skip
    assert not how.closed_loop
    assert "start_times, over 3,000 ms (open loop)" in how.sentence


def test_a_limit_that_was_reached_makes_clients() -> None:
    how = replay(results_of(max_concurrency=2))
    assert how.closed_loop
    assert how.sentence.startswith("max_concurrency is 2: 2 clients in a closed loop")
    waits = {r.request_id: r.after for r in how.workload.requests}
    # Requests 0 and 1 start; each takes 1.5 s, so 2 goes to the first client, 3 to the second.
    assert waits == {"0": None, "1": None, "2": "0", "3": "1"}
    assert all(2 <= r.arrival_ms <= 8 for r in how.workload.requests if r.after)


def test_a_request_goes_to_the_client_that_was_free_first() -> None:
    # Without start_times: 0 is under way for 9 s, so the other client takes all of 1, 2 and 3.
    results = results_of(ttfts=[9.0, 1.0, 1.0, 1.0], start_times=None, max_concurrency=2)
    assert {name: after for name, (_, after) in sent(results).items()} == {
        "0": None, "1": None, "2": "1", "3": "2",
    }  # fmt: skip


def test_a_limit_that_was_never_reached_changes_nothing() -> None:
    how = replay(results_of(max_concurrency=3))
    assert not how.closed_loop
    assert how.sentence.endswith("Its limit of 3 under way was never reached.")


def test_a_request_that_ends_as_another_starts_is_not_under_way_with_it() -> None:
    results = results_of(ttfts=[0.5] * 4, itls=[[0.5]] * 4, max_concurrency=2)  # 1 s each
    assert not replay(results).closed_loop


@pytest.mark.parametrize(
    ("rate", "told"), [("inf", "its request rate is endless"), (None, "and no request rate")]
)
def test_without_times_or_rate_all_are_sent_at_once(rate: object, told: str) -> None:
    results = results_of(start_times=None, request_rate=rate)
    assert {arrival for arrival, _ in sent(results).values()} == {0}
    assert told in replay(results).sentence
    assert "4 clients send one request each, all at once" in replay(results).sentence


def test_without_times_arrivals_are_drawn_at_the_rate() -> None:
    many = 2_000
    results = read_bench_results(
        json.dumps(
            {
                "input_lens": [10] * many,
                "output_lens": [1] * many,
                "ttfts": [0.1] * many,
                "itls": [[]] * many,
                "request_rate": 4.0,
                "burstiness": 2.0,
            }
        )
    )
    arrivals = np.array([r.arrival_ms for r in replay(results).workload.requests])
    gaps = np.diff(arrivals)
    assert gaps.mean() == pytest.approx(250, rel=0.1)
    assert gaps.std() == pytest.approx(250 / math.sqrt(2), rel=0.1)  # a gamma's of shape 2
    assert "drawn anew at its request rate, 4 requests/s" in replay(results).sentence


def test_the_first_are_those_sent_first() -> None:
    results = results_of(start_times=[53.0, 51.0, 52.0, 50.0])
    few = first_requests(results, 2)
    assert few.request.tolist() == [1, 3]
    assert few.arrival_ms is not None
    assert few.arrival_ms.tolist() == [1000, 0]
    assert first_requests(results, 4) is results


def test_some_rows_keep_what_is_theirs() -> None:
    results = results_of(
        output_lens=[2, 3, 1, 2], itls=[[0.5], [0.1, 0.2], [], [0.4]], ttfts=[1.0, 2.0, 3.0, 4.0]
    )
    some = of_rows(results, np.array([1, 2]))
    assert some.prompt_tokens.tolist() == [200, 300]
    assert some.itl_ms.tolist() == [100, 200]
    assert some.itl_offset.tolist() == [0, 2, 2]
    assert some.ttft_ms.tolist() == [2000, 3000]
    assert len(of_rows(results, np.array([2])).itl_ms) == 0


def test_what_did_not_end_is_left_out_of_both_sides() -> None:
    results = results_of()
    experiment = Experiment(workload=replay(results).workload)
    whole = lay_over(results, simulate(experiment))
    assert (whole.requests, whole.unfinished) == (4, 0)
    # A pool of 20 blocks of 16 tokens holds 320: not the last request's 401.
    small = replace(experiment, limits=EngineLimits(kv_blocks=20))
    result = simulate(small)
    laid = lay_over(results, result)
    assert (laid.requests, laid.unfinished) == (3, 1)
    assert laid.ttft is not None
    assert laid.itl is not None
    assert laid.ttft.measured.tokens.sum() == laid.ttft.simulated.tokens.sum() == 3
    assert laid.itl.simulated.tokens.sum() == 3
    gaps_ms, tokens = inter_token_gaps(result)
    for gap_ms in laid.itl.simulated.value_ms:
        assert np.isclose(gaps_ms[tokens > 0], gap_ms).any()


def test_a_run_of_which_nothing_ended_is_refused() -> None:
    results = results_of()
    nothing = Experiment(workload=replay(results).workload, limits=EngineLimits(kv_blocks=1))
    with pytest.raises(ValueError, match=re.escape("requests: none of them ends in the simul")):
        lay_over(results, simulate(nothing))
