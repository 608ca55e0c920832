"""Rows as they are read, kept as compact arrays and cut to the window as far as memory asks."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from s11.checks import MAX_TIME_MS
from s11.traces.hash_ids import HashIds, runs_of
from s11.traces.trace import Trace, checked_window
from s11.traces.values import NS_PER_MS, NS_PER_S
from s11.workload import MAX_REQUESTS

MAX_HASH_RUNS = 4_000_000
AFTER_ALL_NS = 2**63 - 1


class Collected:
    """Requests in the file's order; times are nanoseconds of the file's own clock.

    A window counts from the earliest request, which is the first one of a file in order. Rows
    beyond its end are let go at once, rows before its begin when the arrays are full.
    """

    def __init__(
        self,
        *,
        window_s: tuple[float, float] | None = None,
        first: int | None = None,
        most_requests: int = MAX_REQUESTS,
    ) -> None:
        self.window_s, self.first, self.most_requests = window_s, first, most_requests
        begin_s, end_s = checked_window(window_s)
        self._begin_ns = round(begin_s * NS_PER_S)
        self._length_ns = AFTER_ALL_NS if end_s == math.inf else round(end_s * NS_PER_S)
        self._time_ns, self._prompt, self._output = array("q"), array("i"), array("i")
        self._run_start, self._run_length, self._runs = array("q"), array("i"), array("i")
        self._inside = 0
        self._origin_ns, self._latest_ns = AFTER_ALL_NS, 0
        self._let_go_ns = -1  # the latest time before the window that is kept no more
        self._hashed = False
        self.rows_read = self.zero_output_rows = self.zero_prompt_rows = self.out_of_order_rows = 0

    def add(
        self, time_ns: int, prompt_tokens: int, output_tokens: int, hash_ids: Sequence[int] = ()
    ) -> bool:
        """Take one row; return whether more are wanted.

        Raises:
            ValueError: more requests, or more kinds of shared prompts, than are kept.
        """
        self.rows_read += 1
        if not output_tokens or not prompt_tokens:
            self.zero_output_rows += not output_tokens
            self.zero_prompt_rows += bool(output_tokens)
            return True
        if time_ns < self._latest_ns:
            self.out_of_order_rows += 1
        self._latest_ns = max(self._latest_ns, time_ns)
        self._origin_ns = min(self._origin_ns, time_ns)
        since_ns = time_ns - self._origin_ns
        if since_ns >= self._length_ns:
            return True
        if len(self._time_ns) >= self.most_requests:
            self._make_room()
        self._time_ns.append(time_ns)
        self._prompt.append(prompt_tokens)
        self._output.append(output_tokens)
        if hash_ids or self._hashed:
            self._add_hash_ids(hash_ids)
        self._inside += since_ns >= self._begin_ns
        return self._inside != self.first

    def trace(
        self, *, format_name: str, title: str, name: str, whole_file: bool, time_scale: float
    ) -> Trace:
        """Return what was read, in the order of arrival, the window cut exactly.

        Raises:
            ValueError: no request at all, none in the window, one too long after the first.
        """
        if not self._inside and not len(self._time_ns) and self._origin_ns == AFTER_ALL_NS:
            dropped = self.zero_output_rows + self.zero_prompt_rows
            raise ValueError(
                f"trace: no request in {self.rows_read:,} rows of data, {dropped:,} of them "
                "without output or prompt (allowed: 1 request or more)"
            )
        if self._let_go_ns >= self._origin_ns + self._begin_ns:
            raise ValueError(
                "window_s: the file is not in order, so that its window cannot be cut while it is "
                "read (allowed: a file sorted by time)"
            )
        since_ns = np.frombuffer(self._time_ns, dtype=np.int64) - self._origin_ns  # (kept rows,)
        self._time_ns = array("q")
        rows = np.flatnonzero((since_ns >= self._begin_ns) & (since_ns < self._length_ns))
        rows = rows[: self.first]
        if not len(rows):
            last_s = (self._latest_ns - self._origin_ns) / NS_PER_S
            begin_s, end_s = checked_window(self.window_s)
            raise ValueError(
                f"window_s: no request between {begin_s:g} s and {end_s:g} s (allowed: a part of "
                f"0 s to {last_s:g} s)"
            )
        if self.out_of_order_rows:
            rows = rows[np.argsort(since_ns[rows], kind="stable")]
        arrival_ms = since_ns[rows] / NS_PER_MS  # from the file's first request
        as_it_is = len(rows) == len(since_ns) and not self.out_of_order_rows
        del since_ns
        if arrival_ms[-1] > MAX_TIME_MS:
            raise ValueError(
                f"trace: a request lies {arrival_ms[-1]:g} ms after the first "
                f"(allowed: up to {MAX_TIME_MS:g} ms)"
            )
        hash_ids = None
        if self._hashed:
            hash_ids = self._hash_ids() if as_it_is else self._hash_ids().take(rows)
        whole = Trace(
            format=format_name,
            title=title,
            name=name,
            arrival_ms=arrival_ms,
            prompt_tokens=_column(self._prompt, rows),
            output_tokens=_column(self._output, rows),
            hash_ids=hash_ids,
            rows_read=self.rows_read,
            zero_output_rows=self.zero_output_rows,
            zero_prompt_rows=self.zero_prompt_rows,
            out_of_order_rows=self.out_of_order_rows,
            whole_file=whole_file,
            first=self.first,
        )
        if self.window_s is None and time_scale == 1:
            return whole
        return whole.select(window_s=self.window_s, time_scale=time_scale)

    def _add_hash_ids(self, hash_ids: Sequence[int]) -> None:
        if not self._hashed:
            self._hashed = True
            self._runs = array("i", [0] * (len(self._time_ns) - 1))
        runs = runs_of(hash_ids)
        self._runs.append(len(runs))
        for start, length in runs:
            self._run_start.append(start)
            self._run_length.append(length)
        if len(self._run_start) > MAX_HASH_RUNS:
            raise ValueError(
                f"trace: more than {MAX_HASH_RUNS:,} separate runs of hash_ids by the "
                f"{len(self._time_ns):,}th request (allowed: fewer requests, with --first)"
            )

    def _hash_ids(self) -> HashIds:
        return HashIds(
            run_start=np.frombuffer(self._run_start, dtype=np.int64),
            run_length=np.frombuffer(self._run_length, dtype=np.int32),
            run_offset=np.concatenate(([0], np.cumsum(self._runs, dtype=np.int64))),
        )

    def _make_room(self) -> None:
        """Let go of rows before the window; they may be most of a long file."""
        time_ns = np.frombuffer(self._time_ns, dtype=np.int64)
        since_ns = time_ns - self._origin_ns
        outside = since_ns < self._begin_ns
        rows = np.flatnonzero(~outside & (since_ns < self._length_ns))
        if len(rows) > 0.9 * self.most_requests:
            raise ValueError(
                f"trace: more than {self.most_requests:,} requests (allowed: the first so many "
                "of them, --first N, or a window, --window-s A:B)"
            )
        if outside.any():
            self._let_go_ns = max(self._let_go_ns, int(time_ns[outside].max()))
        prompts, outputs = _column(self._prompt, rows), _column(self._output, rows)
        times = time_ns[rows]
        del time_ns
        self._time_ns = array("q", times.tobytes())
        self._prompt = array("i", prompts.astype(np.int32).tobytes())
        self._output = array("i", outputs.astype(np.int32).tobytes())
        if not self._hashed:
            return
        kept = self._hash_ids().take(rows)
        self._run_start = array("q", kept.run_start.tobytes())
        self._run_length = array("i", kept.run_length.tobytes())
        self._runs = array("i", np.diff(kept.run_offset).astype(np.int32).tobytes())


def _column(values: Any, rows: Any) -> Any:  # (rows,)
    return np.frombuffer(values, dtype=np.int32)[rows].astype(np.int64)
