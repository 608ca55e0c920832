"""The Chrome trace against the rules of its format, and against the run that it tells."""

import itertools
import json
import math
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment, LinearCost, Request, Workload, simulate
from s11.chrome_trace import chrome_trace, trace_events
from s11.chrome_window import LEAST_EVENTS, TraceWindow, trace_window
from s11.plan import HandOver
from s11.results import Result
from tests.loads import (
    EXPERIMENTS,
    load,
    random_kv_experiment,
    random_policy_experiment,
    request,
)

RANDOM = st.randoms(use_true_random=False)
ANY_EXPERIMENT = st.one_of(
    EXPERIMENTS, RANDOM.map(random_kv_experiment), RANDOM.map(random_policy_experiment)
)
Event = dict[str, Any]


def check_format(trace: Any) -> None:
    """Hold a trace against the rules of "Trace Event Format".

    Every event has a phase and a process. Times are microseconds. Complete events (X) of one
    thread nest: each lies inside the one that is open when it begins, or after it. Metadata (M)
    names things, a counter's (C) series are numbers, an instant (i) has a scope.
    """
    assert set(trace) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    lasting: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        assert event["ph"] in {"X", "M", "C", "i"}
        for key in ("pid", "tid"):
            assert isinstance(event[key], int)
            assert event[key] > 0  # Perfetto takes 0 for the idle thread
        assert math.isfinite(event["ts"])
        assert event["ts"] >= 0
        assert isinstance(event["name"], str)
        assert event["name"]
        if event["ph"] == "X":
            assert math.isfinite(event["dur"])
            assert event["dur"] >= 0
            lasting[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
        elif event["ph"] == "M":
            key = {
                "process_name": "name",
                "thread_name": "name",
                "process_sort_index": "sort_index",
                "thread_sort_index": "sort_index",
            }[event["name"]]
            assert set(event["args"]) == {key}
        elif event["ph"] == "C":
            assert event["args"]
            assert all(type(value) in {int, float} for value in event["args"].values())
        else:
            assert event["s"] in {"t", "p", "g"}
    for events in lasting.values():
        check_nesting(events)


def check_nesting(events: list[tuple[int, int]]) -> None:
    """Hold (ts, dur) of one thread, parents before children, against the nesting rule."""
    open_ends: list[int] = []
    for ts, dur in sorted(events, key=lambda event: event[0]):  # stable: parents stay before
        while open_ends and open_ends[-1] <= ts and (dur > 0 or open_ends[-1] < ts):
            open_ends.pop()
        if open_ends:
            assert ts + dur <= open_ends[-1], (ts, dur, open_ends)
        open_ends.append(ts + dur)


def traced(experiment: Experiment, **window: Any) -> tuple[Any, Result]:
    result = simulate(experiment)
    text = "".join(chrome_trace(experiment, result, trace_window(experiment, result, **window)))
    return json.loads(text), result


def of(events: list[Event], phase: str, **wanted: Any) -> list[Event]:
    return [
        event
        for event in events
        if event["ph"] == phase and all(event[key] == value for key, value in wanted.items())
    ]


def threads(events: list[Event], pid: int = 1) -> dict[str, int]:
    found = of(events, "M", name="thread_name", pid=pid)
    return {event["args"]["name"]: event["tid"] for event in found}


def parts(events: list[Event], pid: int, tid: int) -> list[tuple[str, float, float]]:
    """Name, begin and end in ms of what lasts on a thread."""
    return [
        (event["name"], event["ts"] / 1000, (event["ts"] + event["dur"]) / 1000)
        for event in of(events, "X", pid=pid, tid=tid)
    ]


@pytest.mark.parametrize(
    "events", [[(0, 10), (5, 6)], [(0, 10), (2, 3), (4, 2)], [(0, 4), (3, 2), (5, 1)]]
)
def test_the_checker_sees_what_does_not_nest(events: list[tuple[int, int]]) -> None:
    with pytest.raises(AssertionError):
        check_nesting(events)


def test_the_checker_takes_what_nests() -> None:
    check_nesting([(0, 10), (0, 4), (1, 3), (4, 0), (4, 6), (10, 0), (10, 2)])


@settings(max_examples=150)
@given(ANY_EXPERIMENT)
def test_any_run_keeps_to_the_format(experiment: Experiment) -> None:
    trace, result = traced(experiment)
    check_format(trace)
    events = trace["traceEvents"]
    assert trace["otherData"]["left_out"] == "nothing"
    each = [result.prefill_worker, result] if result.prefill_worker else [result]
    for pid, worker in enumerate(each, start=1):
        steps = of(events, "X", pid=pid, tid=1)
        for name in ("prefill_tokens", "decode_tokens"):
            told = [event["args"][name] for event in steps]
            assert told == getattr(worker.steps, name).tolist()
        assert [event["ts"] for event in steps] == [
            round(1000 * time_ms) for time_ms in worker.steps.start_ms.tolist()
        ]


@settings(max_examples=150)
@given(ANY_EXPERIMENT)
def test_each_thread_tells_its_request(experiment: Experiment) -> None:
    """Chunks add up to the slices, decodes to the tokens; waits and stays fill the time."""
    trace, result = traced(experiment)
    events = trace["traceEvents"]
    decoder = 2 if result.prefill_worker else 1
    first_threads, last_threads = threads(events, 1), threads(events, decoder)
    slices, requests = result.prefilling.slices, result.requests
    for row, name in enumerate(requests.request_id):
        if math.isnan(requests.arrival_ms[row]):
            assert f"request {name}" not in first_threads
            continue
        mine = of(events, "X", pid=1, tid=first_threads[f"request {name}"])
        chunks = [event for event in mine if event["name"].startswith("chunk")]
        of_request = slices.request == row
        assert [e["args"]["tokens"] for e in chunks] == slices.tokens[of_request].tolist()
        assert [e["args"]["step"] for e in chunks] == slices.step[of_request].tolist()
        whole = [event for event in mine if event["name"] == f"request {name}"]
        assert len(whole) == (name not in result.rejected)
        last_tid = last_threads.get(f"request {name}")
        decodes = of(events, "X", pid=decoder, tid=last_tid, name="decode")
        of_spans = result.spans.request == row
        assert sum(e["args"]["decode_tokens"] for e in decodes) == int(
            result.spans.decodes[of_spans].sum()
        )
        preempted = of(events, "i", pid=1, tid=first_threads[f"request {name}"], name="preempted")
        assert len(preempted) == int((result.preemptions.request == row).sum())
        # One level down: first wait or prefill at the arrival, nothing before or beside it.
        level = [e for e in mine if e["name"].split()[0] in {"waiting", "preempted,", "prefill"}]
        if name not in result.rejected and level:
            assert level[0]["ts"] == whole[0]["ts"]
        for before, after in itertools.pairwise(level):
            assert before["ts"] + before["dur"] <= after["ts"]


@settings(max_examples=100)
@given(ANY_EXPERIMENT)
def test_counters_hold_their_value_until_the_next(experiment: Experiment) -> None:
    """Who waits or runs at a moment, counted from what became of each request."""
    trace, result = traced(experiment)
    events = trace["traceEvents"]
    each = [result.prefill_worker, result] if result.prefill_worker else [result]
    for pid, worker in enumerate(each, start=1):
        tokens = of(events, "C", pid=pid, name="tokens in the step")
        assert [e["ts"] for e in tokens] == sorted(e["ts"] for e in tokens)
        counts = of(events, "C", pid=pid, name="requests")
        assert all(e["args"]["running"] >= 0 and e["args"]["waiting"] >= 0 for e in counts)
        starts_us = [round(1000 * ms) for ms in worker.steps.start_ms.tolist()]
        for step, start_us in enumerate(starts_us):
            now = [e["args"] for e in tokens if e["ts"] <= start_us][-1]
            assert now == {
                "prefill": int(worker.steps.prefill_tokens[step]),
                "decode": int(worker.steps.decode_tokens[step]),
            }
            now = [e["args"] for e in counts if e["ts"] <= start_us][-1]
            assert now["waiting"] == int(worker.steps.waiting[step])
        if starts_us:
            assert tokens[-1]["args"] == {"prefill": 0, "decode": 0}
            nobody = not (result.never_scheduled or result.never_finished)
            if nobody:
                users = worker.streaming_users
                assert counts[-1]["args"] == {"running": users, "waiting": 0}


def test_the_chapters_scenario_by_hand() -> None:
    """Steps of 5.2 ms, then eight of 23.632 ms: 4 + 0.018 x 1,024 + 0.05 x 24."""
    trace, _ = traced(Experiment())
    events = trace["traceEvents"]
    (process,) = of(events, "M", name="process_name")
    assert process["args"]["name"] == "Engine, chunked"
    assert threads(events) == {"steps": 1, "24 streaming users": 2, "request long": 3}
    steps = of(events, "X", tid=1)
    assert [event["name"] for event in steps[1:3]] == ["decode 24", "prefill 1,024 + decode 24"]
    assert [event["ts"] for event in steps[:4]] == [0, 5_200, 10_400, 34_032]
    assert [event["dur"] for event in steps[:4]] == [5_200, 5_200, 23_632, 23_632]
    assert parts(events, 1, 3)[:3] == [
        ("request long", 10.4, 199.456),
        ("prefill", 10.4, 199.456),
        ("chunk 1,024", 10.4, 34.032),
    ]
    chunk = of(events, "X", tid=3, name="chunk 1,024")[1]["args"]
    assert chunk == {
        "step": 3,
        "start_token": 1024,
        "tokens": 1024,
        "wanted_tokens": 7168,
        "limited_by": "chunk cap",
    }
    instants = [(event["name"], event["ts"]) for event in of(events, "i")]
    assert instants == [("arrival", 10_400), ("first token", 199_456)]
    assert [e["args"] for e in of(events, "C", name="tokens in the step")] == [
        {"prefill": 0, "decode": 24},
        {"prefill": 1024, "decode": 24},
        {"prefill": 0, "decode": 24},
        {"prefill": 0, "decode": 0},
    ]
    assert {event["name"] for event in of(events, "X", tid=2)} == {"next token"}


def test_a_stall_is_named_where_it_is_over_the_target() -> None:
    trace, _ = traced(Experiment().chunking_off())
    (stall,) = of(trace["traceEvents"], "X", tid=2, name="stall")
    assert (stall["ts"], stall["dur"]) == (10_400, 152_656)
    assert stall["args"] == {"itl_ms": 152.656, "itl_target_ms": 50.0}


def test_a_requests_longest_stall_lies_in_its_decodes() -> None:
    """One-millisecond steps: b's whole prompt of 9 tokens takes 1 + 9 = 10 ms of a's time."""
    cost = LinearCost(fixed_ms=1.0, prefill_ms_per_token=1.0, decode_ms_per_token=0.0)
    a = request("a", 1, output_tokens=6)
    b = request("b", 9, arrival_ms=3.0)
    trace, _ = traced(load(a, b, policy="whole_prompt", cost=cost, target_ms=5.0))
    mine = parts(trace["traceEvents"], 1, 3)
    assert ("decode", 2.0, 16.0) in mine
    assert ("longest stall", 3.0, 13.0) in mine


def test_a_preempted_request_waits_and_is_prefilled_again() -> None:
    """Blocks of one token, four of them: two requests of 1 + 3 tokens cannot both end."""
    both = [request(name, 1, output_tokens=4) for name in "ab"]
    trace, result = traced(load(*both, policy="vllm_v1", block_size=1, kv_blocks=4))
    assert len(result.preemptions) == 1
    events = trace["traceEvents"]
    tid = threads(events)["request b"]
    names = [name for name, _, _ in parts(events, 1, tid)]
    assert names.count("prefill") == 2
    assert "preempted, waiting" in names
    (loss,) = of(events, "i", tid=tid, name="preempted")
    (wait,) = of(events, "X", tid=tid, name="preempted, waiting")
    assert loss["ts"] == wait["ts"] == round(1000 * float(result.preemptions.time_ms[0]))
    held = [event["args"]["held"] for event in of(events, "C", name="KV blocks")]
    assert max(held) == 4
    assert held[-1] == 0


def test_two_workers_are_two_processes() -> None:
    """10 tokens prefilled in 1 ms; their KV travels 10 x 1,000 B / 1e6 B/s = 10 ms and 1 more."""
    experiment = Experiment(
        workload=Workload(requests=(Request(request_id="a", prompt_tokens=10, output_tokens=3),)),
        policy="disaggregated",
        cost=LinearCost(fixed_ms=1.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0),
        hand_over=HandOver(kv_bytes_per_token=1000, link_bytes_per_s=1e6, link_latency_ms=1.0),
    )
    trace, _ = traced(experiment)
    events = trace["traceEvents"]
    titles = [event["args"]["name"] for event in of(events, "M", name="process_name")]
    assert titles == ["Prefill worker, disaggregated", "Decode worker, disaggregated"]
    assert parts(events, 1, 3) == [
        ("request a", 0.0, 12.0),
        ("prefill", 0.0, 1.0),
        ("chunk 10", 0.0, 1.0),
        ("KV hand-over", 1.0, 12.0),
    ]
    assert parts(events, 2, 3) == [("request a", 12.0, 14.0), ("decode", 12.0, 14.0)]


def test_a_refused_request_and_one_that_never_runs() -> None:
    refused = load(request("a", 9), request("b", 2), max_model_len=5)
    events = traced(refused)[0]["traceEvents"]
    a = threads(events)["request a"]
    assert [event["name"] for event in of(events, "i", tid=a)] == ["refused on arrival"]
    assert of(events, "X", tid=a) == []
    stuck = load(request("a", 9), policy="whole_prompt", budget=5, users=1, tail=2)
    events = traced(stuck)[0]["traceEvents"]
    assert parts(events, 1, threads(events)["request a"]) == [
        ("request a", 0.0, 2.0),
        ("waiting", 0.0, 2.0),
    ]


@settings(max_examples=100)
@given(ANY_EXPERIMENT, st.floats(0, 0.9), st.floats(0.01, 1), st.integers(1, 5))
def test_a_window_keeps_to_the_format_and_to_itself(
    experiment: Experiment, begin: float, length: float, first_requests: int
) -> None:
    result = simulate(experiment)
    whole = trace_window(experiment, result)
    if whole.end_ms == 0:
        return
    begin_ms = begin * whole.end_ms
    window = trace_window(
        experiment,
        result,
        first_requests=first_requests,
        begin_ms=begin_ms,
        end_ms=begin_ms + length * whole.end_ms,
    )
    trace = json.loads("".join(chrome_trace(experiment, result, window)))
    check_format(trace)
    low, high = round(1000 * window.begin_ms), round(1000 * window.end_ms)
    for event in trace["traceEvents"]:
        if event["ph"] != "M":
            assert low <= event["ts"] <= event["ts"] + event.get("dur", 0) <= high
    names = [name for name in threads(trace["traceEvents"]) if name.startswith("request ")]
    assert len(names) <= first_requests
    assert (trace["otherData"]["left_out"] == "nothing") == (window == whole)


def many(count: int) -> Experiment:
    requests = [request(f"r{n}", 40, output_tokens=9, arrival_ms=20.0 * n) for n in range(count)]
    return load(*requests, chunk=8)


@pytest.mark.parametrize("most", [LEAST_EVENTS, 3_000, 1_000_000])
@pytest.mark.parametrize("begin_ms", [0.0, 1_500.0])
def test_a_bound_on_events_is_kept_and_said(most: int, begin_ms: float) -> None:
    experiment = many(200)
    result = simulate(experiment)
    window = trace_window(experiment, result, most_events=most, begin_ms=begin_ms)
    events = list(trace_events(experiment, result, window))
    assert len(events) <= most
    if most < 1_000_000:
        assert len(events) > most / 3  # the bound is used
        assert "the threads of all but the first" in (window.left_out or "")
        assert "all after" in (window.left_out or "")
    else:
        assert window.requests == 200


def test_all_requests_at_one_moment_still_leave_something() -> None:
    experiment = load(*[request(f"r{n}", 3) for n in range(2_000)], chunk=8)
    result = simulate(experiment)
    window = trace_window(experiment, result, most_events=LEAST_EVENTS)
    events = list(trace_events(experiment, result, window))
    assert 0 < len(events) <= LEAST_EVENTS
    assert of(events, "X", tid=1)
    assert "request r0" in threads(events)


def test_names_of_any_kind_stay_json() -> None:
    hostile = '</script>"\\\n\u2028\ud800'
    trace, _ = traced(load(request(hostile, 3)))
    assert f"request {hostile}" in threads(trace["traceEvents"])


def test_nothing_to_tell_is_a_trace() -> None:
    trace, _ = traced(load())
    check_format(trace)
    assert of(trace["traceEvents"], "X") == []


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"first_requests": 0}, "first_requests: 0"),
    ({"begin_ms": -1.0}, "begin_ms: -1"),
    ({"end_ms": math.nan}, "end_ms: nan"),
    ({"begin_ms": 50.0, "end_ms": 50.0}, "end_ms: 50 is not after begin_ms 50"),
    ({"begin_ms": 1000.0}, "begin_ms: 1000 is after the run's end at 215.056 ms"),
    ({"most_events": 10}, "most_events: 10"),
]


@pytest.mark.parametrize(("window", "named"), REFUSALS)
def test_a_window_that_cannot_be(window: dict[str, Any], named: str) -> None:
    experiment = Experiment()
    with pytest.raises(ValueError, match=named):
        trace_window(experiment, simulate(experiment), **window)


def test_a_time_is_clipped_to_the_window_and_rounded() -> None:
    window = TraceWindow(begin_ms=1.0, end_ms=2.0, requests=0, left_out=None)
    assert [window.clipped_us(ms) for ms in (0.5, 1.0004, 1.0006, 3.0)] == [1000, 1000, 1001, 2000]
