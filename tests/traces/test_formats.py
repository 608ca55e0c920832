"""Each format as its owners publish it, with what real files have besides."""

import json

import numpy as np
import pytest

from s11.traces import FORMATS, SAMPLES, read_trace, sample_path
from tests.traces.files import AZURE, azure, bench, burstgpt, call, mooncake, packed, read


def test_azure_2023() -> None:
    trace = read(
        azure(
            "2023-11-16 18:15:46.6805900,374,44",
            "2023-11-16 18:15:50.9951690,396,109",
            "2023-11-16 18:15:51.2224670,879,55",
        )
    )
    assert (trace.format, trace.rows_read, trace.hash_ids) == ("azure", 3, None)
    # 50.9951690 − 46.6805900 = 4.3145790 s; 51.2224670 − 46.6805900 = 4.5418770 s
    assert trace.arrival_ms.tolist() == [0.0, 4314.579, 4541.877]
    assert trace.prompt_tokens.tolist() == [374, 396, 879]
    assert trace.output_tokens.tolist() == [44, 109, 55]
    second = trace.workload().requests[1]
    assert (second.request_id, second.arrival_ms) == ("1", 4314.579)
    assert (second.prompt_tokens, second.output_tokens) == (396, 109)


def test_the_seventh_digit_is_kept() -> None:
    """100 ns apart: 0.0001 ms."""
    trace = read(azure("2023-11-16 18:15:46.6805900,1,1", "2023-11-16 18:15:46.6805901,1,1"))
    assert trace.arrival_ms.tolist() == [0.0, 0.0001]


def test_azure_2024_with_its_offset() -> None:
    trace = read(
        azure(
            "2024-05-10 00:00:00.009930+00:00,2162,5",
            "2024-05-10 00:00:00.017335+00:00,2399,6",
            "2024-05-10 02:00:01+02:00,1,1",
            "2024-05-09 22:30:02-01:30,1,1",
            "2024-05-10T00:00:03Z,1,1",
        )
    )
    assert trace.arrival_ms.tolist() == [0.0, 7.405, 990.07, 1990.07, 2990.07]


@pytest.mark.parametrize(
    ("before", "after", "apart_s"),
    [
        ("2023-11-16 23:59:59.5", "2023-11-17 00:00:00.25", 0.75),
        ("2023-11-30 23:59:59", "2023-12-01 00:00:00", 1),
        ("2023-12-31 23:59:59", "2024-01-01 00:00:01", 2),
        ("2024-02-28 00:00:00", "2024-03-01 00:00:00", 2 * 86_400),  # a leap year
        ("2023-02-28 00:00:00", "2023-03-01 00:00:00", 86_400),
    ],
)
def test_midnights_months_and_years(before: str, after: str, apart_s: float) -> None:
    assert read(azure(f"{before},1,1", f"{after},1,1")).arrival_ms[1] == 1000 * apart_s


def test_the_multimodal_trace_has_a_column_more_and_another_order() -> None:
    text = (
        "GeneratedTokens,NumImages,ContextTokens,TIMESTAMP\n"
        "7,0,100,2024-10-01 00:00:00.0000000\n9,2,300,2024-10-01 00:00:01.0000000\n"
    )
    trace = read(text)
    assert trace.prompt_tokens.tolist() == [100, 300]
    assert trace.output_tokens.tolist() == [7, 9]


def test_burstgpt_drops_and_counts_its_failed_calls() -> None:
    trace = read(burstgpt(("5", "472", "18"), ("45", "1087", "0"), ("118", "417", "276")))
    assert (trace.format, len(trace)) == ("burstgpt", 2)
    assert (trace.rows_read, trace.zero_output_rows) == (3, 1)
    assert trace.arrival_ms.tolist() == [0, 113_000]
    assert "1 row without output dropped" in trace.sentence()


def test_burstgpt_with_sessions_and_floats() -> None:
    """The third file: a session, how long it took, and counts that passed through floats."""
    text = (
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
        "Log Type\n0.5,abc,1.5,GPT-4,10.0,2.0,12.0,Conversation log\n"
        "1e1,abc,1.5,GPT-4,3,1,4,Conversation log\n"
    )
    trace = read(text)
    assert trace.arrival_ms.tolist() == [0, 9500]
    assert trace.prompt_tokens.tolist() == [10, 3]


def test_a_call_without_a_prompt_is_dropped_and_counted() -> None:
    trace = read(burstgpt(("0", "0", "5"), ("1", "0", "0"), ("3", "9", "5")))
    assert (trace.zero_prompt_rows, trace.zero_output_rows, len(trace)) == (1, 1, 1)
    assert trace.arrival_ms.tolist() == [0]
    assert "1 row without a prompt dropped" in trace.sentence()


def test_mooncake_with_its_hash_ids() -> None:
    trace = read(
        mooncake(
            call(27_482, 6_955, 52, hash_ids=[46, 47, 48, 49, *range(2353, 2363)]),
            call(30_535, 512, 26, hash_ids=[46], model="another key"),
        )
    )
    assert trace.format == "mooncake"
    assert trace.arrival_ms.tolist() == [0, 3053]
    assert trace.hash_ids is not None
    assert list(trace.hash_ids) == [(46, 47, 48, 49, *range(2353, 2363)), (46,)]
    assert [r.hash_ids for r in trace.workload().requests] == list(trace.hash_ids)


def test_mooncake_without_hash_ids_shares_nothing() -> None:
    trace = read(mooncake(call(0.25), call(1.5)))
    assert trace.hash_ids is None
    assert trace.arrival_ms.tolist() == [0, 1.25]
    assert trace.workload().requests[0].hash_ids == ()


def test_hash_ids_may_begin_in_the_middle_of_a_file() -> None:
    trace = read(mooncake(call(), call(output_length=0, hash_ids=[1, 2]), call(hash_ids=[7, 1])))
    assert trace.hash_ids is not None
    assert list(trace.hash_ids) == [(), (7, 1)]


def test_vllm_bench() -> None:
    data = bench(
        input_lens=[10, 20, 30],
        output_lens=[3, 0, 2],
        ttfts=[0.5, 0.0, 0.25],
        itls=[[0.1], [], [0.2]],  # fewer gaps than output tokens - 1
        start_times=[102.0, 100.0, 100.5],
        errors=["", "Bad Gateway", ""],
    )
    trace = read(json.dumps(data))
    assert (trace.format, trace.rows_read, trace.zero_output_rows) == ("vllm bench", 3, 1)
    assert trace.arrival_ms.tolist() == [0, 1500]
    assert trace.prompt_tokens.tolist() == [30, 10]
    assert trace.out_of_order_rows == 1


def test_vllm_bench_with_a_run_a_line_gives_the_last() -> None:
    text = f"{json.dumps(bench(input_lens=[1, 2]))}\n{json.dumps(bench(), indent=1)}\n"
    trace = read(text)
    assert trace.prompt_tokens.tolist() == [10, 20]
    assert "the last of 2 runs" in trace.sentence()


def test_vllm_bench_tells_of_its_concurrency_limit() -> None:
    assert "at most 4" in read(json.dumps(bench(max_concurrency=4))).note


def test_vllm_bench_without_start_times_sends_at_its_rate() -> None:
    count = 2_000
    data = bench(
        input_lens=[9] * count,
        output_lens=[1] * count,
        ttfts=[0.1] * count,
        itls=[[]] * count,
        errors=None,
        start_times=None,
        request_rate=4.0,
    )
    trace = read(json.dumps(data))
    assert "drawn at its request_rate of 4 per second" in trace.note
    # The mean of 1,999 exponential gaps of 250 ms: within 5 standard errors.
    assert np.diff(trace.arrival_ms).mean() == pytest.approx(250, abs=5 * 250 / np.sqrt(count))
    at_once = read(json.dumps(data | {"request_rate": "inf"}))
    assert not at_once.arrival_ms.any()
    assert "all are sent at once" in at_once.note


def test_rows_out_of_order_are_sorted_and_counted() -> None:
    trace = read(burstgpt(("30", "3", "1"), ("10", "1", "1"), ("20", "2", "1"), ("30", "4", "1")))
    assert trace.out_of_order_rows == 2
    assert trace.arrival_ms.tolist() == [0, 10_000, 20_000, 20_000]
    assert trace.prompt_tokens.tolist() == [1, 2, 3, 4]  # those of one time in the file's order
    assert "2 rows out of order sorted" in trace.sentence()


def test_hash_ids_move_with_their_rows() -> None:
    trace = read(
        mooncake(
            call(5, 600, hash_ids=[1, 9]), call(3, 100, hash_ids=[4]), call(4, 513, hash_ids=[1, 2])
        )
    )
    assert list(trace.hash_ids or ()) == [(4,), (1, 2), (1, 9)]
    assert trace.prompt_tokens.tolist() == [100, 513, 600]


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{AZURE}\r\n2023-11-16 18:00:00,5,6\r\n\r\n\r\n",
        '"TIMESTAMP","ContextTokens","GeneratedTokens"\n"2023-11-16 18:00:00","5","6"\n  \n',
        f"{AZURE}\n2023-11-16 18:00:00,5,6",
        f"\n{AZURE.lower()}\n\n2023-11-16 18:00:00, 5 ,6\n",
        'TIMESTAMP,ContextTokens,GeneratedTokens,note\n2023-11-16 18:00:00,5,6,"a, ""b"" c"\n',
    ],
)
def test_marks_ends_of_lines_quotes_and_blank_lines(text: str) -> None:
    trace = read(text)
    assert (trace.prompt_tokens.tolist(), trace.output_tokens.tolist()) == ([5], [6])
    assert (len(read(packed(text))), trace.rows_read) == (1, 1)


def test_gzip_of_several_members_is_one_file() -> None:
    text = azure("2023-11-16 18:00:00,5,6", "2023-11-16 18:00:01,7,8")
    both = packed(text[:50]) + packed(text[50:])
    assert read(both).prompt_tokens.tolist() == [5, 7]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_loads(name: str) -> None:
    trace = read_trace(sample_path(name), name=name)
    assert trace.title in FORMATS
    assert len(trace.workload().requests) == len(trace) >= 10
    assert trace.name == name


def test_every_format_has_a_sample() -> None:
    read_formats = {read_trace(sample_path(name), name=name).title for name in SAMPLES}
    assert read_formats == set(FORMATS)
