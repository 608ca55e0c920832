import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11 import Request, Workload
from s11.bench_results import (
    MAX_BENCH_REQUESTS,
    MAX_BRACKETS,
    MAX_JSON_CHARACTERS,
    BenchHead,
    read_bench_results,
    to_workload,
)

# The fields of `vllm bench serve --save-result --save-detailed`, of a run of four requests: one
# was refused by the server, and one gave no token.
RUN: dict[str, Any] = {
    "date": "20260301-120000",
    "backend": "vllm",
    "label": None,
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 4,
    "request_rate": 2.5,
    "burstiness": 1.0,
    "max_concurrency": None,
    "duration": 3.0,
    "completed": 2,
    "failed": 2,
    "input_lens": [1024, 512, 2048, 0],
    "output_lens": [3, 0, 4, 0],
    "ttfts": [0.25, 0.0, 0.5, 0.0],
    "itls": [[0.02, 0.03], [], [0.0, 0.04], []],
    "start_times": [5000.5, 5000.25, 5000.0, 0.0],
    "generated_texts": ["a b c", "", "{[", ""],
    "errors": ["", "Bad Request", "", ""],
    "mean_ttft_ms": 375.0,
}


def text_of(**changed: Any) -> str:
    """The run's JSON with fields changed; those that become `...` are left out."""
    fields = {name: value for name, value in (RUN | changed).items() if value is not ...}
    return json.dumps(fields)


def test_what_succeeded_is_read_in_milliseconds() -> None:
    results = read_bench_results(text_of())
    assert results.head == BenchHead(
        date="20260301-120000",
        backend="vllm",
        model_id="meta-llama/Llama-3.1-8B-Instruct",
        request_rate_per_s=2.5,
        burstiness=1.0,
        max_concurrency=None,
        run=1,
        runs=1,
    )
    assert len(results) == 2
    assert results.failed == 2
    assert results.request.tolist() == [0, 2]
    assert results.prompt_tokens.tolist() == [1024, 2048]
    assert results.output_tokens.tolist() == [3, 4]
    assert results.ttft_ms.tolist() == [250, 500]
    assert results.itl_ms.tolist() == [20, 30, 0, 40]  # three gaps less than four tokens have
    assert results.itl_offset.tolist() == [0, 2, 4]
    assert results.arrival_ms is not None
    assert results.arrival_ms.tolist() == [500, 0]  # not from the 0.0 of what never began


def test_the_same_requests_go_to_the_simulator() -> None:
    assert to_workload(read_bench_results(text_of())) == Workload(
        requests=(
            Request(request_id="2", prompt_tokens=2048, output_tokens=4, arrival_ms=0.0),
            Request(request_id="0", prompt_tokens=1024, output_tokens=3, arrival_ms=500.0),
        )
    )


def test_without_start_times_the_caller_gives_the_arrivals() -> None:
    results = read_bench_results(text_of(start_times=...))
    assert results.arrival_ms is None
    with pytest.raises(ValueError, match=r"^start_times: missing, so it is not known when"):
        to_workload(results)
    arrivals = [r.arrival_ms for r in to_workload(results, arrival_ms=[7.0, 8.0]).requests]
    assert arrivals == [7, 8]
    with pytest.raises(ValueError, match=r"^arrival_ms: 3 times \(allowed: 2, one a request\)"):
        to_workload(results, arrival_ms=[7.0, 8.0, 9.0])


def test_an_error_after_the_first_tokens_is_a_failure_too() -> None:
    results = read_bench_results(text_of(errors=["", "Bad Request", "Timeout", ""]))
    assert (results.request.tolist(), results.failed) == ([0], 3)


def test_without_errors_no_token_is_what_failing_means() -> None:
    results = read_bench_results(text_of(errors=...))
    assert (results.request.tolist(), results.failed) == ([0, 2], 2)


def test_what_a_failed_request_left_behind_is_passed_over() -> None:
    results = read_bench_results(text_of(ttfts=[0.25, None, 0.5, -1], itls=[[], 5, [], "?"]))
    assert results.ttft_ms.tolist() == [250, 500]
    assert results.itl_ms.tolist() == []
    assert results.itl_offset.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("saved", "rate_per_s"), [("inf", math.inf), (math.inf, math.inf), (4, 4.0), (None, None)]
)
def test_the_request_rate_may_be_endless(saved: Any, rate_per_s: float | None) -> None:
    assert read_bench_results(text_of(request_rate=saved)).head.request_rate_per_s == rate_per_s


def test_figures_that_are_not_read_may_be_anything() -> None:
    assert len(read_bench_results(text_of(mean_ttft_ms=math.nan, rtfx=[[1]]))) == 2


def test_an_older_file_names_its_backend_otherwise() -> None:
    head = read_bench_results(text_of(backend=..., endpoint_type="openai-chat")).head
    assert head.backend == "openai-chat"


@pytest.mark.parametrize("between", ["\n", "\n\n", "", "\r\n"])
def test_of_appended_runs_the_last_is_read_or_the_one_asked_for(between: str) -> None:
    text = "\ufeff" + between.join([text_of(date="one"), text_of(date="two"), text_of()]) + "\n"
    last, first = read_bench_results(text), read_bench_results(text, run=1)
    assert (last.head.date, last.head.run, last.head.runs) == ("20260301-120000", 3, 3)
    assert (first.head.date, first.head.run, first.head.runs) == ("one", 1, 3)
    with pytest.raises(ValueError, match=r"^run: 4 is not a whole number from 1 to 3$"):
        read_bench_results(text, run=4)


def test_an_indented_file_is_one_run() -> None:
    assert read_bench_results(json.dumps(RUN, indent=2)).head.runs == 1


SECONDS = "is not a number from 0 to 86400"
TTFT = "is not a number above 0 to 86400"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"input_lens": ...},
            "input_lens: missing (allowed: a file that was saved with --",
        ),
        ({"itls": None}, "itls: missing"),
        ({"ttfts": 0.25}, "ttfts: not a list"),
        ({"errors": "none"}, "errors: not a list"),
        ({"errors": ["", 5, "", ""]}, "errors: request 1: not a text"),
        ({"ttfts": [0.25]}, "ttfts: 1 values (allowed: 4, as many as input_lens)"),
        ({"start_times": [1.0]}, "start_times: 1 values (allowed: 4, as many as input_lens)"),
        ({"output_lens": [3, 0, 4.5, 0]}, "output_lens: request 2: 4.5 is not a whole number"),
        ({"output_lens": [3, 0, -4, 0]}, "output_lens: request 2: -4 is not a whole number"),
        ({"output_lens": [True, 0, 4, 0]}, "output_lens: request 0: True is not a whole number"),
        ({"output_lens": [0, 0, 0, 0]}, "errors: none of 4 requests succeeded"),
        ({"input_lens": [1024, 512, 0, 0]}, "input_lens: request 2: 0 is not a whole number"),
        ({"input_lens": [10**9, 512, 9, 0]}, "input_lens: request 0: 1000000000 is not a whole"),
        ({"ttfts": [0.25, 0, math.nan, 0]}, f"ttfts: request 2: nan {TTFT}"),
        ({"ttfts": [0.25, 0, math.inf, 0]}, f"ttfts: request 2: inf {TTFT}"),
        ({"ttfts": [0.0, 0, 0.5, 0]}, f"ttfts: request 0: 0.0 {TTFT}"),
        ({"ttfts": [1e308, 0, 0.5, 0]}, f"ttfts: request 0: 1e+308 {TTFT}"),
        ({"ttfts": ["0.2", 0, 0.5, 0]}, f"ttfts: request 0: '0.2' {TTFT}"),
        ({"itls": [[0.02, math.nan], [], [], []]}, f"itls: request 0: nan {SECONDS}"),
        ({"itls": [[], [], [0.02, -0.1], []]}, f"itls: request 2: -0.1 {SECONDS}"),
        ({"itls": [[], [], [0.02, None], []]}, f"itls: request 2: None {SECONDS}"),
        ({"itls": [[], [], [True], []]}, f"itls: request 2: True {SECONDS}"),
        ({"itls": [[], [], [10**400], []]}, "itls: request 2: 10000000000"),
        ({"itls": [[], [], 0.02, []]}, "itls: request 2: not a list"),
        ({"start_times": [math.nan, 0, 0, 0]}, "start_times: request 0: nan is not a number"),
        (
            {"start_times": [0.0, 0.0, 3e6, 0.0]},
            "start_times: request 2 was sent 3,000,000 s after the first (allowed: up to 2,592,000",
        ),
        ({"request_rate": 0}, "request_rate: 0 is not a number above 0"),
        ({"request_rate": "fast"}, "request_rate: 'fast' is not a number"),
        ({"burstiness": math.nan}, "burstiness: nan is not a number"),
        ({"max_concurrency": 0}, "max_concurrency: 0 is not a whole number from 1"),
        ({"model_id": ["x"]}, "model_id: not a text of up to 500 characters"),
        ({"date": "x" * 501}, "date: not a text of up to 500 characters"),
        (
            {"input_lens": [1] * (MAX_BENCH_REQUESTS + 1)},
            "input_lens: 200,001 values (allowed: up to 200,000)",
        ),
    ],
)
def test_a_bad_field_is_refused_by_field_request_and_range(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        read_bench_results(text_of(**changed))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "benchmark: empty"),
        (" \n", "benchmark: empty"),
        ("[]", "benchmark: run 1 is not a JSON object"),
        ("17", "benchmark: run 1 is not a JSON object"),
        (json.dumps([RUN]), "benchmark: run 1 is not a JSON object"),
        (text_of() + "}", "benchmark: not JSON text, one object for each of up to 1,000 runs (Exp"),
        ("1 " * 1001, "benchmark: not JSON text, one object for each of up to 1,000 runs (more th"),
        (text_of()[:-1], "benchmark: not JSON text"),
        ("\0", "benchmark: not JSON text"),
        ('{"a": ' + "9" * 5000 + "}", "benchmark: not JSON text"),
        ("[" * 100_000, "benchmark: lists and objects stand too deep within each other (allowed"),
        ("[" * (MAX_BRACKETS + 1), "benchmark: 1,000,001 lists and objects (allowed"),
        (" " * (MAX_JSON_CHARACTERS + 1), "benchmark: a text of 20,000,001 characters is too long"),
    ],
    ids=range(13),
)
def test_a_text_that_is_no_result_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        read_bench_results(text)
    assert "\n" not in str(caught.value)


leaves = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5)
anything = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4), max_leaves=10)
fields = st.dictionaries(st.sampled_from(sorted(RUN)), anything, max_size=3)


@given(st.one_of(st.text(), fields.map(lambda changed: text_of(**changed))))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        results = read_bench_results(text)
    except ValueError as error:
        reason = str(error)
    else:
        reason = ""
        assert len(results) + results.failed == len(json.loads(text)["input_lens"])
        assert results.itl_offset[-1] == len(results.itl_ms)
        if results.arrival_ms is not None:
            assert results.arrival_ms.min() == 0
    assert len(reason.splitlines()) <= 1
