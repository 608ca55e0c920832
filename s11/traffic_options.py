"""The command line's traffic: a trace file, or requests that are drawn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from s11.arrivals import (
    MAX_BURSTINESS,
    MAX_RATE_PER_S,
    MIN_BURSTINESS,
    Arrivals,
    ClosedLoopArrivals,
    GammaArrivals,
    PoissonArrivals,
    require_rate,
)
from s11.checks import MAX_TIME_MS, MAX_TOKENS, MAX_USERS
from s11.lengths import FixedTokens, Lengths, LognormalTokens
from s11.option_types import Choice, Number, Whole, Window
from s11.terminal import progress
from s11.traces import FORMATS, Trace, read_trace
from s11.traces.trace import MAX_TIME_SCALE, MAX_WINDOW_S, MIN_TIME_SCALE
from s11.traffic import MAX_SEED, Traffic
from s11.traffic_presets import TRAFFIC_PRESETS, TrafficPreset
from s11.workload import MAX_REQUESTS

LOGNORMAL, FIXED = "lognormal", "fixed"
DEFAULT_REQUESTS = 1_000
PARTS = ("prompt", "output")
TRACE_OPTIONS = ("first", "window_s", "time_scale")
QUANTILES = tuple(f"{part}_tokens_{of}" for part in PARTS for of in ("median", "p90"))
TRAFFIC_OPTIONS = (
    "rate_per_s",
    "burstiness",
    "clients",
    "think_ms",
    "requests",
    "seed",
    "output_tokens",
    "most_total_tokens",
    *QUANTILES,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a trace and of drawn traffic."""
    trace = parser.add_argument_group("a recorded trace in place of the long prompt")
    trace.add_argument(
        "--trace", metavar="FILE", help=f"{', '.join(FORMATS)}; known by its content; may be gzip"
    )
    trace.add_argument(
        "--first", type=Whole("first", 1, MAX_REQUESTS), metavar="N", help="at most N requests"
    )
    trace.add_argument(
        "--window-s",
        type=Window("window_s", MAX_WINDOW_S),
        metavar="A:B",
        help="seconds from the file's first request; either may be left out",
    )
    trace.add_argument(
        "--time-scale",
        type=Number("time_scale", MIN_TIME_SCALE, MAX_TIME_SCALE),
        help="0.5 sends the requests twice as fast",
    )
    drawn = parser.add_argument_group("drawn requests in place of the long prompt")
    named = (*TRAFFIC_PRESETS, LOGNORMAL)
    drawn.add_argument(
        "--traffic", type=Choice("traffic", named), help=f"their lengths: {', '.join(named)}"
    )
    drawn.add_argument(
        "--rate-per-s",
        type=_rate,
        metavar="R",
        help=f"requests per second, up to {MAX_RATE_PER_S:g}, or inf: all at once",
    )
    drawn.add_argument(
        "--burstiness",
        type=Number("burstiness", MIN_BURSTINESS, MAX_BURSTINESS),
        help="of gamma-distributed gaps: 1 (default) is Poisson, less is burstier",
    )
    drawn.add_argument(
        "--clients",
        type=Whole("clients", 1, MAX_USERS),
        help="in place of a rate: clients who send when their last request has ended",
    )
    drawn.add_argument(
        "--think-ms", type=Number("think_ms", 0, MAX_TIME_MS), help="a client's pause before it"
    )
    drawn.add_argument(
        "--requests",
        type=Whole("requests", 1, MAX_REQUESTS),
        metavar="N",
        help=f"how many (default: {DEFAULT_REQUESTS:,})",
    )
    drawn.add_argument("--seed", type=Whole("seed", 0, MAX_SEED))
    drawn.add_argument(
        "--output-tokens",
        type=Whole("output_tokens", 1, MAX_TOKENS),
        help="of every request, beside --prompt-tokens, with --traffic fixed",
    )
    for name in QUANTILES:
        drawn.add_argument(
            f"--{name.replace('_', '-')}",
            type=Number(name, 1, MAX_TOKENS),
            help="with --traffic lognormal",
        )
    drawn.add_argument(
        "--most-total-tokens",
        type=Whole("most_total_tokens", 2, 2 * MAX_TOKENS),
        help="draw requests again whose prompt and output are longer",
    )


def source_from(options: argparse.Namespace) -> Trace | Traffic | None:
    """Return the trace or the traffic that the options describe; None where they name none.

    Raises:
        ValueError: options that do not go together, a file that is no trace.
    """
    given = {name: value for name, value in vars(options).items() if value is not None}
    chosen = [name for name in ("trace", "traffic") if name in given]
    if chosen == ["traffic"] and "rates" in given and "clients" not in given:
        given.setdefault("rate_per_s", given["rates"][0])  # a sweep goes through all of them
    if len(chosen) > 1:
        raise ValueError("traffic: not allowed together with trace")
    for needed, names in (("trace", TRACE_OPTIONS), ("traffic", TRAFFIC_OPTIONS)):
        for name in names if needed not in chosen else ():
            if name in given:
                raise ValueError(f"{name}: does not go without --{needed} (allowed: with it)")
    if not chosen:
        return None
    fixed = given.get("traffic") == FIXED
    for name in ("request",) if fixed else ("request", "prompt_tokens"):
        if name in given:
            raise ValueError(f"{name}: not allowed together with {chosen[0]}")
    return _trace(given) if chosen == ["trace"] else _traffic(given)


def source_data(source: Trace | Traffic) -> dict[str, Any]:
    """Return what a run's JSON says of its requests' source."""
    return {"trace" if isinstance(source, Trace) else "traffic": source.to_dict()}


def source_sentence(source: Trace | Traffic) -> str:
    """Return what was read or drawn, in words."""
    if isinstance(source, Trace):
        return source.sentence()
    arrivals = source.arrivals
    if isinstance(arrivals, ClosedLoopArrivals):
        how = f"{arrivals.clients:,} closed-loop clients, {arrivals.think_ms:g} ms to think"
    elif isinstance(arrivals, GammaArrivals):
        how = f"{arrivals.rate_per_s:g} per second, burstiness {arrivals.burstiness:g}"
    else:
        how = f"{arrivals.rate_per_s:g} per second, Poisson"
    return f"{source.request_count:,} requests drawn with seed {source.seed}: {how}."


def _trace(given: dict[str, Any]) -> Trace:
    path = Path(given["trace"])
    with progress("trace, MB") as advance:
        return read_trace(
            path,
            name=path.name,
            progress=lambda done, size: advance(done // 1_000_000, size // 1_000_000),
            **{name: given[name] for name in TRACE_OPTIONS if name in given},
        )


def _traffic(given: dict[str, Any]) -> Traffic:
    name = given["traffic"]
    prompt, output = _lengths(given, TRAFFIC_PRESETS.get(name))
    preset = TRAFFIC_PRESETS.get(name)
    bound = preset.most_total_tokens if preset else None
    return Traffic(
        request_count=given.get("requests", DEFAULT_REQUESTS),
        arrivals=_arrivals(given),
        prompt=prompt,
        output=output,
        seed=given.get("seed", 0),
        most_total_tokens=given.get("most_total_tokens", bound),
    )


def _lengths(given: dict[str, Any], preset: TrafficPreset | None) -> tuple[Lengths, Lengths]:
    for name in QUANTILES:
        if (name in given) == (preset is not None):
            raise ValueError(
                f"{name}: does not go with --traffic {given['traffic']} (allowed: lognormal)"
                if preset
                else f"{name}: missing for --traffic lognormal (allowed: {', '.join(QUANTILES)})"
            )
    if preset is None:
        made = [
            LognormalTokens(
                median=given[f"{part}_tokens_median"], p90=_p90(given, f"{part}_tokens")
            )
            for part in PARTS
        ]
        return made[0], made[1]
    lengths: list[Lengths] = [preset.prompt, preset.output]
    for number, part in enumerate(PARTS):
        if f"{part}_tokens" in given:
            if given["traffic"] != FIXED:
                raise ValueError(
                    f"{part}_tokens: does not go with --traffic {given['traffic']} "
                    f"(allowed: {FIXED})"
                )
            lengths[number] = FixedTokens(tokens=given[f"{part}_tokens"])
    return lengths[0], lengths[1]


def _p90(given: dict[str, Any], field: str) -> float:
    median, p90 = given[f"{field}_median"], float(given[f"{field}_p90"])
    if p90 < median:
        raise ValueError(
            f"{field}_p90: {p90:g} is less than the median {median:g} (allowed: as much or more)"
        )
    return p90


def _arrivals(given: dict[str, Any]) -> Arrivals:
    if ("clients" in given) == ("rate_per_s" in given):
        raise ValueError(
            "rate_per_s: not allowed together with clients"
            if "clients" in given
            else "rate_per_s: missing (allowed: a rate, or --clients in its place)"
        )
    for name, needed in (("burstiness", "rate_per_s"), ("think_ms", "clients")):
        if name in given and needed not in given:
            raise ValueError(f"{name}: does not go without {needed} (allowed: with it)")
    if "clients" in given:
        return ClosedLoopArrivals(clients=given["clients"], think_ms=given.get("think_ms", 0.0))
    if given.get("burstiness", 1.0) == 1.0:
        return PoissonArrivals(rate_per_s=given["rate_per_s"])
    return GammaArrivals(rate_per_s=given["rate_per_s"], burstiness=given["burstiness"])


def _rate(text: str) -> float:
    try:
        value: object = float(text)
    except ValueError:
        value = text
    try:
        return require_rate(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
