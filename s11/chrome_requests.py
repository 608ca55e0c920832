"""The events of a Chrome trace that tell a request: its waits, its chunks, its decodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from s11.chrome_events import FIRST_REQUEST_THREAD, Event, complete, named
from s11.chrome_window import TraceWindow, run_end_ms
from s11.experiment import Experiment
from s11.export_tables import outcomes
from s11.exports import rounded
from s11.request_metrics import request_metrics, token_gaps
from s11.results import REASONS, Result, SliceTable
from s11.step_tables import Ints

REFUSED = "refused on arrival"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stay:
    """From a request's seat to its loss; what comes to nothing is None.

    token_ms: when the first token of the stay came.
    decode_row: of the span table.
    """

    begin_ms: float
    end_ms: float
    cached_tokens: int
    token_ms: float | None
    decode_row: int | None
    lost: bool


class _Rows:
    """The rows of a table by request."""

    def __init__(self, request: Ints, count: int) -> None:
        self.order = np.argsort(request, kind="stable")
        self.bounds = np.searchsorted(request[self.order], np.arange(count + 1))

    def of(self, request: int) -> list[int]:
        rows: list[int] = self.order[self.bounds[request] : self.bounds[request + 1]].tolist()
        return rows


def request_events(
    pid: int, experiment: Experiment, result: Result, worker: Result, window: TraceWindow
) -> Iterator[Event]:
    """Yield the threads of the requests that the window holds, on one of the workers."""
    told = _Teller(pid, experiment, result, worker, window)
    for row in range(window.requests):
        yield from told.thread(row)


class _Teller:
    """One worker's tables, by request."""

    def __init__(
        self, pid: int, experiment: Experiment, result: Result, worker: Result, window: TraceWindow
    ) -> None:
        self.pid, self.result, self.worker, self.window = pid, result, worker, window
        self.target_ms = experiment.itl_target_ms
        self.end_ms = run_end_ms(result)
        self.hands_over = worker is not result
        self.handed_over = result.prefill_worker is not None and worker is result
        requests = result.requests
        self.came_ms = requests.first_token_ms if self.handed_over else requests.arrival_ms
        self.left_ms = requests.first_token_ms if self.hands_over else requests.last_token_ms
        count = len(requests)
        self.slices = _Rows(worker.slices.request, count)
        self.admissions = _Rows(worker.admissions.request, count)
        self.preemptions = _Rows(worker.preemptions.request, count)
        self.spans = _Rows(worker.spans.request, count)
        self.metrics = request_metrics(result)
        self.outcomes = list(outcomes(result))
        self.decode_ends_ms = worker.decode_ends_ms()
        self.gaps_ms = token_gaps(worker).step_ms

    def thread(self, row: int) -> Iterator[Event]:
        """Yield one request's events; nothing where it is not on this worker in the window."""
        begin_ms, left_ms = float(self.came_ms[row]), float(self.left_ms[row])
        if math.isnan(begin_ms):  # never sent, or never handed over
            return
        if self.handed_over and self.result.requests.output_tokens[row] == 1:
            return  # it was complete when it came
        end_ms = self.end_ms if math.isnan(left_ms) else left_ms
        if end_ms < self.window.begin_ms or begin_ms > self.window.end_ms:
            return
        request_id = self.result.requests.request_id[row]
        tid = FIRST_REQUEST_THREAD + row
        yield from named(self.pid, tid, "thread", f"request {request_id}", order=tid)
        if self.outcomes[row] == REFUSED:
            yield from self._instant(row, REFUSED, begin_ms)
            return
        yield from self._part(row, f"request {request_id}", begin_ms, end_ms, self._about(row))
        came = "KV handed over" if self.handed_over else "arrival"
        yield from self._instant(row, came, begin_ms)
        if not self.handed_over:
            yield from self._first_token(row)
        yield from self._stays(row, begin_ms, end_ms)
        prefilled_ms = float(self.worker.requests.last_token_ms[row])
        if self.hands_over and not math.isnan(prefilled_ms):
            yield from self._part(row, "KV hand-over", prefilled_ms, end_ms, {})

    def _about(self, row: int) -> Event:
        requests, metrics = self.result.requests, self.metrics
        return {
            "prompt_tokens": int(requests.prompt_tokens[row]),
            "output_tokens": int(requests.output_tokens[row]),
            "outcome": self.outcomes[row],
            "ttft_ms": rounded(float(metrics.ttft_ms[row])),
            "longest_itl_ms": rounded(float(metrics.longest_itl_ms[row])),
            "latency_ms": rounded(float(metrics.latency_ms[row])),
        }

    def _stays(self, row: int, came_ms: float, end_ms: float) -> Iterator[Event]:
        """Yield a request's waits and its stays between them."""
        waits_since_ms, lost = came_ms, False
        chunks = self.slices.of(row)
        for stay in self._stay_list(row, end_ms):
            yield from self._wait(row, waits_since_ms, stay.begin_ms, lost=lost)
            if not self.handed_over:
                starts_ms = self.worker.steps.start_ms
                mine = [
                    one for one in chunks if starts_ms[self.worker.slices.step[one]] < stay.end_ms
                ]
                yield from self._prefill(row, stay, mine)
                chunks = chunks[len(mine) :]
            if stay.decode_row is not None:
                yield from self._decode(row, stay.decode_row, since_ms=stay.begin_ms)
            if stay.lost:
                yield from self._instant(row, "preempted", stay.end_ms)
            waits_since_ms, lost = stay.end_ms, stay.lost
        if lost or not self.admissions.of(row):
            yield from self._wait(row, waits_since_ms, end_ms, lost=lost)

    def _stay_list(self, row: int, end_ms: float) -> list[_Stay]:
        admissions, preemptions = self.worker.admissions, self.worker.preemptions
        seats = self.admissions.of(row)
        losses = self.preemptions.of(row)
        spans = self.spans.of(row)
        stays = []
        for place, seat in enumerate(seats):
            lost = place < len(losses)
            left_ms = float(preemptions.time_ms[losses[place]]) if lost else end_ms
            if self.hands_over and not lost:
                done_ms = float(self.worker.requests.last_token_ms[row])
                left_ms = end_ms if math.isnan(done_ms) else done_ms
            # A span is of the stay in which its first token came.
            mine = spans[:1]
            if mine and float(self.worker.spans.token_ms[mine[0]]) > left_ms:
                mine = []
            spans = spans[len(mine) :]
            stays.append(
                _Stay(
                    begin_ms=float(admissions.time_ms[seat]),
                    end_ms=left_ms,
                    cached_tokens=int(admissions.cached_tokens[seat]),
                    token_ms=float(self.worker.spans.token_ms[mine[0]]) if mine else None,
                    decode_row=mine[0] if mine and self.worker.spans.decodes[mine[0]] else None,
                    lost=lost,
                )
            )
        return stays

    def _wait(self, row: int, begin_ms: float, end_ms: float, *, lost: bool) -> Iterator[Event]:
        if end_ms > begin_ms:
            name = "preempted, waiting" if lost else "waiting"
            yield from self._part(row, name, begin_ms, end_ms, {})

    def _prefill(self, row: int, stay: _Stay, chunks: list[int]) -> Iterator[Event]:
        slices: SliceTable = self.worker.slices
        steps = self.worker.steps
        end_ms = stay.end_ms if stay.token_ms is None else stay.token_ms
        tokens = int(slices.tokens[chunks].sum()) if chunks else 0
        about: Event = {"computed_tokens": tokens, "chunks": len(chunks)}
        if stay.cached_tokens:
            about["cached_tokens"] = stay.cached_tokens
        yield from self._part(row, "prefill", stay.begin_ms, end_ms, about)
        for chunk in chunks:
            step, tokens = int(slices.step[chunk]), int(slices.tokens[chunk])
            args: Event = {
                "step": step,
                "start_token": int(slices.start_token[chunk]),
                "tokens": tokens,
                "wanted_tokens": int(slices.wanted_tokens[chunk]),
            }
            reason = REASONS[int(slices.limited_by[chunk])]
            if reason is not None:
                args["limited_by"] = str(reason)
            begin_ms, ended_ms = float(steps.start_ms[step]), float(steps.end_ms[step])
            yield from self._part(row, f"chunk {tokens:,}", begin_ms, ended_ms, args)

    def _decode(self, row: int, span: int, *, since_ms: float) -> Iterator[Event]:
        """Yield a run of decodes, and in it the longest wait where that is over the target."""
        spans, ends_ms = self.worker.spans, self.decode_ends_ms
        first, decodes = int(spans.first_decode[span]), int(spans.decodes[span])
        token_ms = float(spans.token_ms[span])
        begin_ms = max(token_ms, since_ms)  # what is handed over may wait for its seat
        end_ms = float(ends_ms[first + decodes - 1])
        yield from self._part(row, "decode", begin_ms, end_ms, {"decode_tokens": decodes})
        places_ms = np.concatenate(([token_ms], ends_ms[first : first + decodes]))
        gaps_ms = np.diff(places_ms)
        gaps_ms[1:] = self.gaps_ms[first + 1 : first + decodes]  # exact, unlike the difference
        longest = int(np.argmax(gaps_ms))
        if gaps_ms[longest] > self.target_ms:
            gap = {
                "itl_ms": rounded(float(gaps_ms[longest])),
                "itl_target_ms": self.target_ms,
            }
            since = max(float(places_ms[longest]), begin_ms)
            yield from self._part(row, "longest stall", since, float(places_ms[longest + 1]), gap)

    def _first_token(self, row: int) -> Iterator[Event]:
        first_ms = float(self.result.requests.first_token_ms[row])
        if not math.isnan(first_ms):
            yield from self._instant(row, "first token", first_ms)

    def _part(
        self, row: int, name: str, begin_ms: float, end_ms: float, args: Event
    ) -> Iterator[Event]:
        window = self.window
        if end_ms < window.begin_ms or begin_ms > window.end_ms:
            return
        begin_us, end_us = window.clipped_us(begin_ms), window.clipped_us(end_ms)
        tid = FIRST_REQUEST_THREAD + row
        yield complete(self.pid, tid, "request", name, begin_us, end_us, args)

    def _instant(self, row: int, name: str, time_ms: float) -> Iterator[Event]:
        if self.window.begin_ms <= time_ms <= self.window.end_ms:
            yield {
                "ph": "i",
                "pid": self.pid,
                "tid": FIRST_REQUEST_THREAD + row,
                "name": name,
                "ts": self.window.clipped_us(time_ms),
                "s": "t",
            }
