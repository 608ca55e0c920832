"""Long files in bounded memory: what is allocated does not grow with the text."""

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from s11.traces import read_trace
from tests.traces.files import BURSTGPT, burstgpt, call, mooncake, read


class Endless(io.RawIOBase):
    """A file that is made while it is read, and counts what was asked for."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest, self.served = parts, b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < len(buffer) and (part := next(self._parts, b"")):
            self._rest += part
        block, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(block)] = block
        self.served += len(block)
        return len(block)


def failed_calls(megabytes: int) -> Iterator[bytes]:
    """Rows that are dropped, so that only what reading itself needs is counted."""
    yield f"{BURSTGPT}\n".encode()
    row = b"17,GPT-4,1000,0,1000," + b"x" * 9_978 + b"\n"
    assert len(row) == 10_000
    for _ in range(100 * megabytes):
        yield row
    yield b"18,GPT-4,1000,5,1005,API log\n"


def peak_bytes(source: Any, **options: Any) -> int:
    tracemalloc.start()
    try:
        assert len(read_trace(source, name="long", **options)) >= 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_file_of_200_mb_takes_a_megabyte_or_two() -> None:
    source = Endless(failed_calls(200))
    assert peak_bytes(source) < 3_000_000
    assert source.served > 200_000_000


def test_a_gzip_of_40_mb_too() -> None:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        for part in failed_calls(40):
            file.write(part)
    packed.seek(0)
    assert peak_bytes(packed) < 3_000_000


def test_a_kept_request_takes_tens_of_bytes() -> None:
    """Three columns while reading (16 bytes), three in the end (24), and what joins them."""
    count = 30_000
    text = burstgpt(*[(str(n), "1000", "5") for n in range(count)])
    assert peak_bytes(io.BytesIO(text.encode())) < 1_500_000 + 90 * count


def test_hash_ids_take_a_few_bytes_a_run() -> None:
    """A list of 200 ids is two runs: 24 bytes, where a tuple takes 1,600 and its ids more."""
    count = 2_000
    row = json.dumps(call(0, 200 * 512, 5, hash_ids=[0, *range(5_000, 5_199)])) + "\n"
    trace = read(row * count)
    assert trace.hash_id_bytes < 40 * count
    assert peak_bytes(io.BytesIO((row * count).encode())) < 1_500_000 + 200 * count


def test_reading_stops_early_where_the_first_are_enough() -> None:
    def rows() -> Iterator[bytes]:
        while True:
            yield mooncake(call()).encode() * 100

    source = Endless(rows())
    assert len(read_trace(source, name="endless", first=1_000)) == 1_000  # type: ignore[arg-type]
    assert source.served < 1_000_000


def test_progress_tells_how_far_the_file_is_read() -> None:
    told: list[tuple[int, int]] = []
    text = burstgpt(*[(str(n), "1", "1") for n in range(20_000)]).encode()
    read_trace(io.BytesIO(text), name="x", progress=lambda done, size: told.append((done, size)))
    assert told == sorted(told)
    assert told[-1] == (len(text), 0)


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_source_that_gives_little_at_a_time(size: int) -> None:
    class Little(io.BytesIO):
        def read(self, most: int | None = -1) -> bytes:
            return super().read(min(size, most) if most and most > 0 else size)

    text = burstgpt(*[(str(n), str(n + 1), "1") for n in range(50)]).encode()
    for data in (text, gzip.compress(text)):
        trace = read_trace(Little(data), name="little")
        assert trace.prompt_tokens.tolist() == list(range(1, 51))
