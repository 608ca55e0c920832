"""`Trace`: recorded requests as compact arrays, and what was read of their file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TIME_MS, require_int, require_ms
from s11.traces.hash_ids import HashIds
from s11.traces.values import NS_PER_MS, NS_PER_S
from s11.words import count
from s11.workload import MAX_REQUESTS, Request, Workload

MAX_WINDOW_S = MAX_TIME_MS / 1000
MIN_TIME_SCALE, MAX_TIME_SCALE = 1e-6, 1e6

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Requests in the order of their arrival (those of one time in the file's order).

    arrival_ms: from the window's begin; without one, from the file's first request that is not
        dropped.
    hash_ids: what a prompt shares with others; None where the file does not tell.
    format, title: of the file's format, for programs and for people.
    name: the file's.
    rows_read: of data, up to where reading stopped.
    zero_output_rows, zero_prompt_rows: dropped: failed calls, and calls without a prompt.
    out_of_order_rows: came after a row of a later time; they are sorted.
    whole_file: whether it was read to its end.
    note: what else there is to say about its times, a sentence; may be empty.
    begin_s, end_s: the window, in the file's own seconds from its first request.
    first: the most requests that were asked for; None: all.
    time_scale: what arrivals were multiplied with: 0.5 is twice as fast.
    """

    format: str
    title: str
    name: str
    arrival_ms: Floats  # (requests,)
    prompt_tokens: Ints  # (requests,)
    output_tokens: Ints  # (requests,)
    hash_ids: HashIds | None
    rows_read: int
    zero_output_rows: int = 0
    zero_prompt_rows: int = 0
    out_of_order_rows: int = 0
    whole_file: bool = True
    note: str = ""
    begin_s: float = 0.0
    end_s: float = math.inf
    first: int | None = None
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        """Make the columns read-only: traces are shared."""
        for column in (self.arrival_ms, self.prompt_tokens, self.output_tokens):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.arrival_ms)

    @property
    def hash_id_bytes(self) -> int:
        """What the hash ids take in memory, in bytes."""
        return 0 if self.hash_ids is None else self.hash_ids.nbytes

    @property
    def rate_per_s(self) -> float:
        """Requests per second between the first and the last; infinite where all come at once."""
        span_ms = float(self.arrival_ms[-1] - self.arrival_ms[0])
        return 1000.0 * (len(self) - 1) / span_ms if span_ms else math.inf

    def select(
        self,
        *,
        window_s: tuple[float, float] | None = None,
        first: int | None = None,
        time_scale: float = 1.0,
    ) -> Trace:
        """Return a part: a window, of that the first requests, and of those the times scaled.

        window_s: from and before which second of this trace's clock; the first becomes 0.
        first: at most so many requests.
        time_scale: 0.5 sends them twice as fast.

        Raises:
            ValueError: a value out of range, a window without a request.
        """
        begin_s, end_s = checked_window(window_s)
        if first is not None:
            require_int("first", first, 1, MAX_REQUESTS)
        require_ms("time_scale", time_scale, MIN_TIME_SCALE, MAX_TIME_SCALE)
        since_ns = np.rint(self.arrival_ms * NS_PER_MS)  # (requests,) whole, so edges are exact
        begin_ns = round(begin_s * NS_PER_S)
        end_ns = math.inf if end_s == math.inf else round(end_s * NS_PER_S)
        rows = np.flatnonzero((since_ns >= begin_ns) & (since_ns < end_ns))[:first]
        if not len(rows):
            raise ValueError(
                f"window_s: no request between {begin_s:g} s and {end_s:g} s (allowed: a part of "
                f"0 s to {float(self.arrival_ms[-1]) / 1000.0:g} s)"
            )
        arrival_ms = self.arrival_ms[rows]
        if begin_ns:
            arrival_ms = (since_ns[rows] - begin_ns) / NS_PER_MS
        arrival_ms = arrival_ms * time_scale
        if arrival_ms[-1] > MAX_TIME_MS:
            raise ValueError(
                f"time_scale: {time_scale:g} puts the last request beyond {MAX_TIME_MS:g} ms "
                "(allowed: a smaller one)"
            )
        return replace(
            self,
            arrival_ms=arrival_ms,
            prompt_tokens=self.prompt_tokens[rows],
            output_tokens=self.output_tokens[rows],
            hash_ids=None if self.hash_ids is None else self.hash_ids.take(rows),
            begin_s=self.begin_s + begin_s / self.time_scale,
            end_s=min(self.end_s, self.begin_s + end_s / self.time_scale),
            first=self.first if first is None else first,
            time_scale=self.time_scale * time_scale,
        )

    def at_rate(self, rate_per_s: float) -> Trace:
        """Return the same requests with their times scaled to another mean rate.

        Raises:
            ValueError: a rate out of range, requests that all come at once.
        """
        require_ms("rate_per_s", rate_per_s, 0, 1e6, above=True)
        if self.rate_per_s == math.inf:
            raise ValueError(
                "rate_per_s: the trace's requests all come at once, at no rate that can be scaled "
                "(allowed: a trace of two times or more)"
            )
        return self.select(time_scale=self.rate_per_s / rate_per_s)

    def workload(self) -> Workload:
        """Return the requests for the simulator, named "0", "1", … in their order."""
        shared: Iterable[tuple[int, ...]] = repeat(()) if self.hash_ids is None else self.hash_ids
        return Workload(
            requests=tuple(
                [
                    Request(
                        request_id=str(number),
                        arrival_ms=arrival_ms,
                        prompt_tokens=prompt_tokens,
                        output_tokens=output_tokens,
                        hash_ids=hash_ids,
                    )
                    for number, (arrival_ms, prompt_tokens, output_tokens, hash_ids) in enumerate(
                        zip(
                            self.arrival_ms.tolist(),
                            self.prompt_tokens.tolist(),
                            self.output_tokens.tolist(),
                            shared,
                            strict=False,  # repeat() has no end
                        )
                    )
                ]
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what was read, as plain data: the source, counts and the selection."""
        return {
            "name": self.name,
            "format": self.format,
            "requests": len(self),
            "rows_read": self.rows_read,
            "zero_output_rows": self.zero_output_rows,
            "zero_prompt_rows": self.zero_prompt_rows,
            "out_of_order_rows": self.out_of_order_rows,
            "whole_file": self.whole_file,
            "note": self.note or None,
            "window_s": [self.begin_s, None if self.end_s == math.inf else self.end_s],
            "first": self.first,
            "time_scale": self.time_scale,
        }

    def sentence(self) -> str:
        """Return what was read and what was dropped, in words."""
        told = f"{count(len(self), 'request')} of {count(self.rows_read, 'row')} read"
        dropped = [
            f"{count(rows, 'row')} without {what} dropped"
            for rows, what in (
                (self.zero_output_rows, "output"),
                (self.zero_prompt_rows, "a prompt"),
            )
            if rows
        ]
        if self.out_of_order_rows:
            dropped.append(f"{count(self.out_of_order_rows, 'row')} out of order sorted")
        if not self.whole_file:
            dropped.append("reading stopped there")
        parts = "; ".join([told, *dropped])
        return " ".join(part for part in (f"{self.title}: {parts}.", self.note) if part)


def checked_window(window_s: tuple[float, float] | None) -> tuple[float, float]:
    """Return a window's begin and end in seconds; without one, all of time.

    Raises:
        ValueError: no begin of 0 or more, an end that is not after it.
    """
    if window_s is None:
        return 0.0, math.inf
    begin_s = require_ms("window_s", window_s[0], 0, MAX_WINDOW_S)
    if window_s[1] == math.inf:
        return begin_s, math.inf
    return begin_s, require_ms("window_s", window_s[1], begin_s, MAX_WINDOW_S, above=True)
