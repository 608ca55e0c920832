"""How many requests the traffic page's search draws, and what a run that was cut says of it."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from s11.capacity import CapacityTargets, RatePoint
from s11.ui import traffic_search
from s11.ui.traffic_search import Search, found_of, precision_words, search, targets_of
from s11.ui.traffic_setup import DrawnTraffic, Setup, Side

ROOT = Path(__file__).resolve().parents[2]
TARGETS = CapacityTargets(itl_p99_ms=50.0)


def point(rate_per_s, *, itl_p99_ms=1.0, cut=False):
    return RatePoint(
        rate_per_s=rate_per_s,
        request_count=1_000,
        itl_p99_ms=itl_p99_ms,
        scheduling_delay_p50_ms=1.0,
        ttft_p50_ms=1.0,
        ttft_p99_ms=1.0,
        slo_attainment=1.0,
        goodput_per_s=rate_per_s,
        requests_per_s=rate_per_s,
        never_served=0,
        rejected=0,
        stopped_at_max_steps=cut,
    )


def test_a_search_draws_more_requests_than_one_look_and_says_what_they_are_enough_for():
    app = AppTest.from_file(str(ROOT / "pages" / "traffic.py"), default_timeout=120)
    app.query_params["traffic_mode"] = "Capacity"
    app.run()
    assert not app.exception
    assert " --requests 1000 " in app.code[0].value
    # Half of N requests wait for N/2 of the overload: 2 x 2 s x 1 per s / 0.05 = 80.
    told = " ".join(block.value for block in app.markdown)
    assert "takes 80 requests for each request per second" in told
    assert "1,000 requests will do up to 12 per second" in told
    app.number_input(key="search_requests").set_value(2_000).run()
    assert " --requests 2000 " in app.code[0].value
    assert any("up to 25 per second" in block.value for block in app.markdown)


@pytest.mark.parametrize(("requests", "told"), [(400, "5.0"), (40, "0.50"), (1, "0.01")])
def test_requests_and_the_rate_that_they_are_enough_for(requests, told):
    assert f"will do up to {told} per second" in precision_words(requests)


def test_a_slow_rate_whose_run_was_cut_does_not_hide_a_faster_one_that_holds():
    points = [point(0.5, cut=True), point(4.0), point(8.0, itl_p99_ms=60.0)]
    found = found_of(points, TARGETS)
    assert found.highest_per_s == 4.0
    assert found.failing is not None
    assert found.failing.rate_per_s == 8.0
    assert found_of([point(0.5, cut=True)], TARGETS).highest is None  # all that there is


def asked(*, itl_target_ms: float) -> Setup:
    drawn: dict[str, Any] = {"preset": "openchat", "burstiness": 1.0, "seed": 0}
    return Setup(
        source=DrawnTraffic(**drawn, rate_per_s=4.0, request_count=30),
        side=Side(policy="chunked", chunk_tokens=128),
        most_running=64,
        prefix_caching=False,
        machine=None,
        ttft_target_ms=2_000.0,
        itl_target_ms=itl_target_ms,
    )


def test_a_target_that_no_rate_holds_does_not_spoil_the_search_for_the_next(monkeypatch):
    """4 ms is less than any decode step takes: its search goes down to runs that are cut."""
    monkeypatch.setattr(traffic_search, "MAX_STEPS", 8_000)
    monkeypatch.setattr(traffic_search, "SEARCHED", (128,))
    found = Search(asked(itl_target_ms=8.0))
    list(search(found))
    tight, chosen, _ = targets_of(found.asked)
    points = found.points[128]
    assert any(one.stopped_at_max_steps for one in points)
    assert found_of(points, tight).highest is None
    highest = found_of(points, chosen).highest
    assert highest is not None
    assert highest.itl_p99_ms is not None
    assert highest.itl_p99_ms <= 8.0


def test_a_search_that_was_interrupted_leaves_the_one_after_it_alone():
    """The page runs anew while the run before it still simulates: both would keep what is found."""
    alone, found = (Search(asked(itl_target_ms=50.0)) for _ in range(2))
    list(search(alone))
    interrupted = search(found)
    next(interrupted)
    after = search(found)
    next(after)
    assert list(interrupted) == []
    list(after)
    assert found.finished
    assert found.points == alone.points
