"""What two schedulers do to the same traffic, in a sentence that is true of these results."""

from __future__ import annotations

from dataclasses import dataclass

from s11.figures.traffic_attainment import stalled_share
from s11.figures.traffic_capacity import rate_words
from s11.figures.traffic_cdf_info import share_words
from s11.figures.traffic_look import TrafficRun
from s11.words import count, ms, times

TOLD_FACTOR = 1.05  # from which on a factor is worth telling


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficVerdict:
    """A headline of at most 45 characters, and a few sentences with the figures."""

    headline: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)


def verdict(a: TrafficRun, b: TrafficRun, *, itl_target_ms: float) -> TrafficVerdict:
    """Return what run B does to traffic that run A serves too: stalls, TTFT, who is served."""
    requests = len(a.result.requests)
    if not requests and not a.experiment.workload.streaming_users:
        return TrafficVerdict(headline="No request asks for anything", sentences=(
            "There is no request in this traffic, so neither has anything to do.",))  # fmt: skip
    sentences = [
        _stalls(a, b),
        _stalled(a, b, itl_target_ms=itl_target_ms),
        _ttft(a, b),
        _pace(a, b),
        *_served(a, b),
    ]
    return TrafficVerdict(
        headline=_headline(a, b), sentences=tuple([told for told in sentences if told])
    )


def _headline(a: TrafficRun, b: TrafficRun) -> str:
    before, after = a.metrics.longest_stall_ms, b.metrics.longest_stall_ms
    if before is None and after is None:
        return "Nobody streams"
    if before is None or after is None:
        return f"Longest stall {ms(after if before is None else before)}, in one alone"
    if ms(before) == ms(after):
        return f"Longest stall {ms(before)} in both"
    return f"Longest stall {ms(before)} → {ms(after)}"


def _stalls(a: TrafficRun, b: TrafficRun) -> str:
    """Return how the longest stall and the P99 ITL change from A to B."""
    before, after = a.metrics.longest_stall_ms, b.metrics.longest_stall_ms
    if before is None and after is None:
        return "Nobody gets a second token in either, so there is no stall to see."
    if before is None or after is None:
        none, other = ("A", "B") if before is None else ("B", "A")
        metrics = b.metrics if before is None else a.metrics
        return (
            f"Nobody gets a second token under {none}; under {other} the longest stall is "
            f"{ms(metrics.longest_stall_ms)}, P99 ITL {ms(metrics.itl_p99_ms)}."
        )
    p99 = _from_to("P99 ITL", a.metrics.itl_p99_ms, b.metrics.itl_p99_ms)
    if ms(before) == ms(after):
        return f"The longest stall is {ms(before)} under both; {p99}."
    how = "shortens" if after < before else "lengthens"
    return (
        f"B ({b.label}) {how} the longest stall from {ms(before)} to {ms(after)}"
        f"{_factor(before, after)}; {p99}."
    )


def _stalled(a: TrafficRun, b: TrafficRun, *, itl_target_ms: float) -> str:
    """Return how many requests see a stall over the target."""
    shares = [stalled_share(run, itl_target_ms=itl_target_ms) for run in (a, b)]
    if shares[0] is None or shares[1] is None:
        return ""
    before, after = share_words(shares[0]), share_words(shares[1])
    over = f"over {ms(itl_target_ms)}"
    if before == after:
        if shares[0] == 0:
            return f"No request sees a stall {over} under either."
        return f"{before} of the requests see a stall {over} under both."
    return f"Requests with a stall {over}: {before} → {after}."


def _ttft(a: TrafficRun, b: TrafficRun) -> str:
    if a.metrics.ttft_p50_ms is None and b.metrics.ttft_p50_ms is None:
        return "No request gets a first token." if len(a.result.requests) else ""
    half = _from_to("TTFT p50", a.metrics.ttft_p50_ms, b.metrics.ttft_p50_ms)
    most = _from_to("p99", a.metrics.ttft_p99_ms, b.metrics.ttft_p99_ms)
    return f"{half}; {most}."


def _pace(a: TrafficRun, b: TrafficRun) -> str:
    """Return how many requests each run serves where clients wait for their answers."""
    before, after = a.metrics.requests_per_s, b.metrics.requests_per_s
    if before is None or after is None:
        return ""
    if all(request.after is None for request in a.experiment.workload.requests):
        return ""
    told = [rate_words(rate) if rate >= 0.1 else f"{rate:.2g}" for rate in (before, after)]
    if told[0] == told[1]:
        return f"Clients wait for their answers: both serve {told[0]} requests/s."
    return f"Clients wait for their answers: A serves {told[0]} requests/s, B serves {told[1]}."


def _from_to(name: str, before: float | None, after: float | None) -> str:
    if ms(before) == ms(after):
        return f"{name} is {ms(before)} either way"
    return f"{name} {ms(before)} → {ms(after)}"


def _factor(before: float, after: float) -> str:
    low, high = sorted((before, after))
    if low <= 0 or high / low < TOLD_FACTOR:
        return ""
    return f" ({times(high / low)} {'shorter' if after < before else 'longer'})"


def _served(a: TrafficRun, b: TrafficRun) -> list[str]:
    """Return how many requests each run serves to the end, and which one was cut short."""
    requests = len(a.result.requests)
    done = [run.metrics.finished_requests for run in (a, b)]
    told = []
    if not requests:
        return []
    if done == [requests, requests]:
        all_of_them = "the 1 request" if requests == 1 else f"all {requests:,} requests"
        told.append(f"Both serve {all_of_them}.")
    elif done[0] == done[1]:
        told.append(f"Both serve {done[0]:,} of {count(requests, 'request')}.")
    else:
        told.append(f"A serves {done[0]:,} of {count(requests, 'request')}, B serves {done[1]:,}.")
    for name, run in (("A", a), ("B", b)):
        if run.result.stopped_at_max_steps:
            steps = count(len(run.result.steps), "step")
            told.append(f"{name} was cut after {steps}: its figures are of these alone.")
        elif run.result.never_scheduled:
            never = count(len(run.result.never_scheduled), "request")
            told.append(f"{name} can never begin {never}.")
    return told
