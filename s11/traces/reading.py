"""`read_trace`: a public trace file of any known format, known by its header or keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from s11.checks import require_int, require_ms
from s11.traces import bench, mooncake
from s11.traces.bench import UnknownFormatError, read_bench
from s11.traces.collected import Collected
from s11.traces.lines import blocks, lines
from s11.traces.mooncake import read_mooncake
from s11.traces.tables import TABLE_FORMATS, read_table, table_format
from s11.traces.trace import MAX_TIME_SCALE, MIN_TIME_SCALE, Trace, checked_window
from s11.workload import MAX_REQUESTS

FORMATS = (*[made.title for made in TABLE_FORMATS], mooncake.TITLE, bench.TITLE)
MAX_NAME_CHARACTERS = 200
ALLOWED = (
    "a CSV with the columns TIMESTAMP, ContextTokens, GeneratedTokens (Azure) or Timestamp, "
    "Request tokens, Response tokens (BurstGPT); JSON lines with timestamp, input_length, "
    "output_length (Mooncake); the JSON of vllm bench serve --save-result --save-detailed"
)
_MOONCAKE_KEY = re.compile(rb'"(?:input_length|output_length|hash_ids)"\s*:')

Progress = Callable[[int, int], None]


def read_trace(
    source: Path | BinaryIO,
    *,
    name: str,
    first: int | None = None,
    window_s: tuple[float, float] | None = None,
    time_scale: float = 1.0,
    most_requests: int = MAX_REQUESTS,
    progress: Progress | None = None,
) -> Trace:
    """Return the requests of a trace file, plain or gzipped, read in bounded memory.

    Its window is cut first, of that the first requests are taken, then their times scaled.

    name: the file's, for what is said about it.
    first: at most so many requests; reading stops there.
    window_s: from and before which second after the file's first request; the first becomes 0.
    time_scale: 0.5 sends them twice as fast.
    most_requests: more are refused.
    progress: called with the bytes read and all there are (0 where that is not known).

    Raises:
        ValueError: a file of no known format, a row that is wrong (in one sentence, with its
            number, column and value), too many requests, options out of range.
    """
    require_int("most_requests", most_requests, 1, MAX_REQUESTS)
    if first is not None:
        require_int("first", first, 1, MAX_REQUESTS)
    checked_window(window_s)
    require_ms("time_scale", time_scale, MIN_TIME_SCALE, MAX_TIME_SCALE)
    name = name[:MAX_NAME_CHARACTERS]
    if not isinstance(source, Path):
        return _read(source, 0, name, first, window_s, time_scale, most_requests, progress)
    try:
        if source.exists() and not source.is_file():  # a device or a pipe need not end
            raise ValueError(f"trace: {name} is not a file")
        size = source.stat().st_size
        with source.open("rb") as file:
            return _read(file, size, name, first, window_s, time_scale, most_requests, progress)
    except OSError as error:
        raise ValueError(f"trace: {name} cannot be read ({error.strerror})") from error


def _read(
    file: BinaryIO,
    size: int,
    name: str,
    first: int | None,
    window_s: tuple[float, float] | None,
    time_scale: float,
    most_requests: int,
    progress: Progress | None,
) -> Trace:
    told = None if progress is None else (lambda done: progress(done, size))
    text_blocks = blocks(file, progress=told)
    begin = next(text_blocks, b"")
    everything = chain((begin,), text_blocks)
    collected = Collected(window_s=window_s, first=first, most_requests=most_requests)
    if begin.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        if not _is_mooncake(begin):
            return _bench(everything, name, first, window_s, time_scale)
        whole = read_mooncake(lines(everything), collected)
        format_name, title = mooncake.NAME, mooncake.TITLE
    else:
        rows = lines(everything)
        header = next(rows, (1, ""))[1]
        if not header:
            raise ValueError("trace: the file is empty (allowed: a header and a row or more)")
        made = table_format(header)
        if made is None:
            raise ValueError(
                f"trace: no known format; it begins with {_shown(header)} (allowed: {ALLOWED})"
            )
        whole = read_table(made, rows, header, collected)
        format_name, title = made.name, made.title
    return collected.trace(
        format_name=format_name, title=title, name=name, whole_file=whole, time_scale=time_scale
    )


def _is_mooncake(begin: bytes) -> bool:
    """Whether the first line's keys are Mooncake's; a result of vllm bench has others."""
    line = begin.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return bool(_MOONCAKE_KEY.search(line))


def _bench(
    everything: Iterator[bytes],
    name: str,
    first: int | None,
    window_s: tuple[float, float] | None,
    time_scale: float,
) -> Trace:
    begin = next(everything)
    try:
        trace = read_bench(chain((begin,), everything), name=name)
    except UnknownFormatError:
        text = begin.decode("utf-8", errors="replace").lstrip("\ufeff")
        raise ValueError(
            f"trace: no known format; it begins with {_shown(text)} (allowed: {ALLOWED})"
        ) from None
    return trace.select(window_s=window_s, first=first, time_scale=time_scale)


def _shown(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
