"""The traffic page's results: verdict, figures, distributions, the run over time, stalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from s11.figures.traffic_attainment import (
    attainment_alt,
    attainment_columns,
    attainment_figure,
    attainment_info,
)
from s11.figures.traffic_cdf import cdf_figure
from s11.figures.traffic_cdf_info import CdfInfo, cdf_alt, cdf_columns, cdf_info, share_words
from s11.figures.traffic_look import TrafficRun
from s11.figures.traffic_words import verdict
from s11.machine_words import machine_words
from s11.ui.frame import chart, plain
from s11.ui.traffic_kept import Kept
from s11.ui.traffic_runs import run
from s11.ui.traffic_setup import MAX_STEPS, MOST_REQUESTS, Setup
from s11.ui.traffic_stalls import stalls
from s11.ui.traffic_take_away import numbers, take_away
from s11.ui.traffic_time import time_panel
from s11.words import count, ms

_distributions: Kept[CdfInfo] = Kept(size_of=lambda info: 1, most=64)


def results(setups: Sequence[Setup]) -> None:
    """Run both sides and lay what they gave.

    Raises:
        ValueError: values that do not go together, a model that does not fit.
    """
    runs = [run(setup) for setup in setups]
    told = verdict(*runs, itl_target_ms=setups[0].itl_target_ms)
    st.markdown(f"**{plain(told.headline)}.** {plain(told.text)}")
    _tiles(runs)
    _cut(runs)
    st.header("How long they wait", anchor="distributions")
    _pictures(runs, setups)
    st.header("The run over time", anchor="time")
    time_panel(runs)
    stalls(runs, [setup.run_key for setup in setups])
    take_away(runs, setups)


def _tiles(runs: Sequence[TrafficRun]) -> None:
    """Lay B's figures, each with A's beside it."""
    target_ms = runs[0].experiment.itl_target_ms

    def share(value: float | None) -> str:
        return "none" if value is None else share_words(value)

    def per_s(value: float | None) -> str:
        return "none" if value is None else f"{value:,.3g}/s"

    figures: list[tuple[str, Callable[[TrafficRun], float | None], Callable[..., str], str]] = [
        ("Longest stall", lambda r: r.metrics.longest_stall_ms, ms, "The longest ITL of anyone."),
        ("P99 ITL", lambda r: r.metrics.itl_p99_ms, ms, "Of all tokens but the first ones."),
        ("TTFT p50", lambda r: r.metrics.ttft_p50_ms, ms, "From arrival to the first token."),
        ("TTFT p99", lambda r: r.metrics.ttft_p99_ms, ms, "From arrival to the first token."),
        (
            f"Stall over {ms(target_ms)}",
            lambda r: r.metrics.stalled_share,
            share,
            "Requests that waited longer than the ITL target at least once.",
        ),
        (
            "SLO attainment",
            lambda r: r.metrics.slo_attainment,
            share,
            "Requests that meet both targets: TTFT, and every single ITL.",
        ),
        (
            "Goodput",
            lambda r: r.metrics.goodput_per_s,
            per_s,
            "Requests per second that meet both targets, over the run's own time.",
        ),
        (
            "Throughput",
            lambda r: r.metrics.decode_tokens_per_s,
            lambda rate: "none" if rate is None else f"{rate:,.0f} tok/s",
            "Decode tokens (all but first ones) per second of the run's own time.",
        ),
    ]
    for row in range(2):
        places = st.container(key=f"pair_traffic_figures_{row}").columns(4)
        for place, (label, value, words, about) in zip(
            places, figures[4 * row : 4 * row + 4], strict=True
        ):
            a, b = (words(value(one)) for one in runs)
            place.metric(
                f"{label}, B",
                b,
                delta=f"A: {a}",
                delta_color="off",
                delta_arrow="off",
                border=True,
                help=about,
            )


def _cut(runs: Sequence[TrafficRun]) -> None:
    if any(run.result.stopped_at_max_steps for run in runs):
        st.warning(
            f"This page runs at most {count(MAX_STEPS, 'step')} of each side; what was run until "
            "then is shown.",
            icon=":material/hourglass_disabled:",
        )
    if len(runs[0].result.requests) == MOST_REQUESTS:
        st.caption(f"{MOST_REQUESTS:,} requests are the most that this page runs.")


def _pictures(runs: Sequence[TrafficRun], setups: Sequence[Setup]) -> None:
    targets = {
        "itl_target_ms": setups[0].itl_target_ms,
        "ttft_target_ms": setups[0].ttft_target_ms,
    }
    info = _distributions.get(tuple(setups), lambda: cdf_info(runs, **targets))
    spec = cdf_figure(info)
    chart(spec, key="traffic_cdf", alt=cdf_alt(info), filename="s11-distributions")
    numbers("distributions", cdf_columns(info), spec)
    met = attainment_info(runs, **targets)
    bars = attainment_figure(met)
    chart(bars, key="traffic_met", alt=attainment_alt(met), filename="s11-attainment")
    numbers("targets met", attainment_columns(met), bars)
    told = machine_words(runs[1].experiment)
    if told:
        st.markdown(f":small[{plain(told)} How far off it is: [Models & trust](models).]")
