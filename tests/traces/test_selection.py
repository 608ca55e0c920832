"""A window, of that the first requests, of those the times scaled: while reading, and after."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.traces import Trace
from tests.traces.files import azure, bench, burstgpt, call, each_second, mooncake, packed, read


def told(trace: Trace) -> list[tuple[float, int]]:
    return list(zip(trace.arrival_ms.tolist(), trace.prompt_tokens.tolist(), strict=True))


def test_a_window_counts_from_its_begin() -> None:
    trace = read(each_second(10), window_s=(3, 6))
    assert told(trace) == [(0, 4), (1000, 5), (2000, 6)]  # 6 s is no longer in it
    assert (trace.begin_s, trace.end_s, trace.rows_read) == (3, 6, 10)
    assert told(read(each_second(10), window_s=(2.5, 4)))[0] == (500, 4)


def test_a_window_without_end() -> None:
    assert told(read(each_second(5), window_s=(3, math.inf))) == [(0, 4), (1000, 5)]


def test_the_first_requests_of_a_window_scaled() -> None:
    trace = read(each_second(10), window_s=(3, 9), first=2, time_scale=0.5)
    assert told(trace) == [(0, 4), (500, 5)]  # twice as fast
    assert (trace.first, trace.time_scale, trace.whole_file) == (2, 0.5, False)
    assert trace.to_dict() == {
        "name": "file",
        "format": "burstgpt",
        "requests": 2,
        "rows_read": 5,
        "zero_output_rows": 0,
        "zero_prompt_rows": 0,
        "out_of_order_rows": 0,
        "whole_file": False,
        "note": None,
        "window_s": [3, 9],
        "first": 2,
        "time_scale": 0.5,
    }


def test_reading_stops_at_the_first_requests() -> None:
    """What comes after them is never looked at, wrong or not."""
    trace = read(each_second(3) + "this is no row\n", first=3)
    assert (len(trace), trace.rows_read, trace.whole_file) == (3, 3, False)
    assert "reading stopped there" in trace.sentence()
    assert read(each_second(3), first=9).whole_file


def test_dropped_rows_do_not_count_among_the_first() -> None:
    text = burstgpt(("0", "1", "0"), ("1", "2", "1"), ("2", "3", "0"), ("3", "4", "1"))
    trace = read(text, first=2)
    assert told(trace) == [(0, 2), (2000, 4)]
    assert (trace.rows_read, trace.zero_output_rows) == (4, 2)


def test_a_window_at_a_tenth_of_a_microsecond() -> None:
    """4.3145790 s is in the window from there on, and not in the one that ends there."""
    text = azure("2023-11-16 18:15:46.6805900,1,1", "2023-11-16 18:15:50.9951690,2,1")
    edge_s = 4.3145790
    assert told(read(text, window_s=(edge_s, math.inf))) == [(0, 2)]
    assert told(read(text).select(window_s=(edge_s, math.inf))) == [(0, 2)]
    assert told(read(text, window_s=(0, edge_s))) == [(0, 1)]
    assert told(read(text).select(window_s=(0, edge_s))) == [(0, 1)]


def test_a_window_of_a_file_out_of_order_counts_from_the_earliest() -> None:
    text = burstgpt(("20", "3", "1"), ("10", "1", "1"), ("30", "4", "1"), ("15", "2", "1"))
    assert told(read(text, window_s=(5, 20))) == [(0, 2), (5000, 3)]


def test_the_bound_on_requests_counts_those_in_the_window() -> None:
    """100 rows pass through arrays of 10, and 9 of them are in the window."""
    trace = read(each_second(100), window_s=(90, 99), most_requests=10)
    assert told(trace) == [(1000 * n, 91 + n) for n in range(9)]
    rows = [call(1000 * n, 600, hash_ids=[0, n + 1]) for n in range(100)]
    hashed = read(mooncake(*rows), window_s=(90, 99), most_requests=10)
    assert list(hashed.hash_ids or ()) == [(0, n) for n in range(91, 100)]


def test_a_window_that_cannot_be_cut_while_reading() -> None:
    """The first row lies at 100 s, so rows before 110 s are let go; the last lies at 0."""
    rows = [(str(100 + n // 20), "1", "1") for n in range(80)]
    with pytest.raises(ValueError, match=r"window_s: the file is not in order.*sorted by time"):
        read(burstgpt(*rows, ("0", "1", "1")), window_s=(10, 200), most_requests=50)


@pytest.mark.parametrize("window_s", [(10.0, 20.0), (0.25, 0.5)])
def test_a_window_without_a_request(window_s: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"no request between .* a part of 0 s to 9 s") as early:
        read(each_second(10), window_s=window_s)
    with pytest.raises(ValueError, match="no request between") as late:
        read(each_second(10)).select(window_s=window_s)
    assert str(early.value) == str(late.value)


def test_a_selection_of_vllm_bench() -> None:
    trace = read(json.dumps(bench(start_times=[0.0, 3.0])), window_s=(1, 5), time_scale=2)
    assert told(trace) == [(4000, 20)]


def test_scaling_beyond_what_a_request_may_have() -> None:
    with pytest.raises(ValueError, match="time_scale: 2 puts the last request beyond"):
        read(burstgpt(("0", "1", "1"), ("900000000", "1", "1"))).select(time_scale=2)


def test_a_trace_at_another_rate() -> None:
    trace = read(each_second(5))  # 4 gaps in 4 s
    assert trace.rate_per_s == 1
    faster = trace.at_rate(4)
    assert told(faster) == [(250 * n, n + 1) for n in range(5)]
    assert faster.rate_per_s == 4
    with pytest.raises(ValueError, match="rate_per_s: 0 "):
        trace.at_rate(0)
    with pytest.raises(ValueError, match="all come at once"):
        read(burstgpt(("1", "1", "1"), ("1", "1", "1"))).at_rate(1)


def test_a_part_of_a_scaled_part_is_told_in_the_files_own_time() -> None:
    """10 s to 50 s at double speed takes 20 s; of that from 5 s on is from the file's 20 s on."""
    part = read(each_second(60)).select(window_s=(10, 50), time_scale=0.5)
    again = part.select(window_s=(5, 8), time_scale=3)
    assert (again.begin_s, again.end_s, again.time_scale) == (20, 26, 1.5)
    assert told(again) == [(1500 * n, 21 + n) for n in range(6)]


def test_columns_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        read(each_second(2)).arrival_ms[0] = 1


rows = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30
)


@given(rows=rows, begin=st.integers(0, 40), length=st.integers(1, 60), first=st.integers(1, 30))
def test_reading_a_part_is_reading_all_and_taking_the_part(
    rows: list[tuple[int, int, int]], begin: int, length: int, first: int
) -> None:
    """Against plain lists; the file is sorted, as the early stop asks."""
    rows = sorted(rows)
    kept = [(time, prompt) for time, prompt, output in rows if output and prompt]
    inside = [
        (1000.0 * (time - kept[0][0] - begin), prompt)
        for time, prompt in kept
        if begin <= time - kept[0][0] < begin + length
    ][:first]
    text = burstgpt(*[(str(time), str(prompt), str(output)) for time, prompt, output in rows])
    options: dict[str, Any] = {"window_s": (begin, begin + length), "first": first}
    if inside:
        assert told(read(text, **options)) == inside
        assert told(read(text).select(**options)) == inside
    else:
        with pytest.raises(ValueError, match="no request"):
            read(text, **options)


@given(rows=rows)
def test_every_row_is_kept_or_counted(rows: list[tuple[int, int, int]]) -> None:
    text = burstgpt(*[(str(t), str(p), str(o)) for t, p, o in rows])
    try:
        trace = read(packed(text))
    except ValueError:
        assert not any(prompt and output for _, prompt, output in rows)
        return
    assert len(trace) + trace.zero_output_rows + trace.zero_prompt_rows == len(rows)
    assert sorted(trace.arrival_ms) == trace.arrival_ms.tolist()
    assert trace.arrival_ms[0] == 0
