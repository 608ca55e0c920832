"""Whatever the bytes, a trace or one sentence comes out, and nothing else."""

import gzip
import json

from hypothesis import given
from hypothesis import strategies as st

from s11.traces import SAMPLES, sample_path
from tests.traces.files import bench, read

FILES = {name: sample_path(name).read_bytes() for name in SAMPLES}
VALUES = [
    *(b"-1", b"NaN", b"1e308", b"1e-308", b"9" * 30, b'"', b"\xff", b"\0", b"\r", b"\n\n", b""),
    *(b"null", b"true", b"[", b"]", b"{", b"}", b",", b":", b"\\", b"=1+1", b"\xef\xbb\xbf"),
]


def trace_or_sentence(data: bytes) -> None:
    try:
        trace = read(data)
    except ValueError as refused:
        sentence = str(refused)
        assert "\n" not in sentence
        assert 10 < len(sentence) < 600
        return
    assert (trace.prompt_tokens >= 1).all()
    assert (trace.output_tokens >= 1).all()
    assert trace.arrival_ms[0] == 0
    assert len(trace.workload().requests) == len(trace)


@given(data=st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    trace_or_sentence(data)
    trace_or_sentence(gzip.compress(data))
    trace_or_sentence(b"\x1f\x8b" + data)


@given(
    name=st.sampled_from(SAMPLES),
    at=st.integers(0, 5_000),
    cut=st.integers(0, 40),
    value=st.sampled_from(VALUES),
)
def test_a_sample_with_something_wrong_in_it(name: str, at: int, cut: int, value: bytes) -> None:
    data = FILES[name]
    at %= len(data)
    trace_or_sentence(data[:at] + value + data[at + cut :])


@given(name=st.sampled_from(SAMPLES), length=st.integers(0, 5_000))
def test_a_sample_that_is_cut_off(name: str, length: int) -> None:
    trace_or_sentence(FILES[name][:length])
    trace_or_sentence(gzip.compress(FILES[name])[:length])


@given(
    key=st.sampled_from(sorted(bench())),
    value=st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=4,
    ),
)
def test_a_result_of_vllm_bench_with_any_value(key: str, value: object) -> None:
    trace_or_sentence(json.dumps(bench() | {key: value}).encode())
