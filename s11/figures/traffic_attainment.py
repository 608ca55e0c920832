"""Which share of the requests meets the targets, for one run or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from s11.figures.theme import INK, PAPER, Spec, axis
from s11.figures.traffic_cdf_info import share_words
from s11.figures.traffic_look import (
    RUN_LOOKS,
    Look,
    TrafficRun,
    check_runs,
    foot,
    head,
    legend_name,
    run_names,
    traffic_caption,
)
from s11.request_metrics import attained
from s11.words import count, ms

BAR, HEAD, GAP, AXIS_ROOM = 20, 18, 14, 30  # px
HATCHES = ("/", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttainmentInfo:
    """The shares of each run's requests that meet each target, and both.

    rows: by what is asked, the share of each run; None: a run of no requests.
    """

    title: str
    caption: list[str]
    names: tuple[str, ...]
    rows: dict[str, tuple[float | None, ...]]


def attainment_info(
    runs: Sequence[TrafficRun], *, itl_target_ms: float, ttft_target_ms: float | None
) -> AttainmentInfo:
    """Return which share of all requests meets the targets; who is not served meets none.

    Raises:
        ValueError: no run, or more than two.
    """
    check_runs(runs)
    rows: dict[str, tuple[float | None, ...]] = {}
    stall = f"All tokens, none later than {ms(itl_target_ms)}"
    if ttft_target_ms is None:
        rows[stall] = tuple([_attained(run, None, itl_target_ms) for run in runs])
    else:
        rows[f"First token within {ms(ttft_target_ms)}"] = tuple(
            [_share(run.per_request.ttft_ms <= ttft_target_ms) for run in runs]
        )
        rows[stall] = tuple([_attained(run, None, itl_target_ms) for run in runs])
        both = tuple([_attained(run, ttft_target_ms, itl_target_ms) for run in runs])
        rows["Both: SLO attainment"] = both
    return AttainmentInfo(
        title=_title([*rows.values()][-1]),
        caption=traffic_caption(runs),
        names=tuple(run_names(runs)),
        rows=rows,
    )


def stalled_share(run: TrafficRun, *, itl_target_ms: float) -> float | None:
    """Return the share of all requests that saw an ITL over the target; None: no request."""
    return _share(run.per_request.longest_itl_ms > itl_target_ms)


def _attained(run: TrafficRun, ttft_target_ms: float | None, itl_target_ms: float) -> float | None:
    met = attained(run.per_request, ttft_target_ms=ttft_target_ms, itl_target_ms=itl_target_ms)
    return _share(met)


def _share(met: np.ndarray) -> float | None:  # (requests,)
    return float(met.mean()) if len(met) else None


def _title(shares: tuple[float | None, ...]) -> str:
    """Return the finding, in 45 characters at most."""
    told = [None if share is None else share_words(share) for share in shares]
    if None in told:
        return "No request asks for anything"
    if len(told) == 1:
        return f"SLO attainment {told[0]}"
    if told[0] == told[1]:
        return f"SLO attainment {told[0]} in both"
    return f"SLO attainment: A {told[0]}, B {told[1]}"


def attainment_figure(info: AttainmentInfo) -> Spec:
    """Return the Plotly spec: for each target a bar a run, on one axis from 0 to 100%."""
    bars = len(info.names)
    block = HEAD + bars * BAR + GAP
    plot = block * len(info.rows)
    spec = head(
        title=info.title,
        caption=info.caption,
        meta={"figure": "traffic-attainment", "rows": {k: list(v) for k, v in info.rows.items()}},
    )
    spec |= {
        **foot(
            info.names if bars > 1 else (),
            top=spec["margin"]["t"],
            plot=plot,
            axis_room=AXIS_ROOM,
        ),
        "barmode": "overlay",
        "hovermode": "closest",
        "xaxis": axis(range=[0, 1], tickformat=".0%", fixedrange=True, anchor="y"),
        "yaxis": axis(range=[plot, 0], visible=False, fixedrange=True),
        "annotations": [],
    }
    spec["margin"] |= {"l": 14, "r": 22}
    data: list[Spec] = []
    for nth, (name, look) in enumerate(zip(info.names, _looks(bars), strict=True)):
        shares = [row[nth] for row in info.rows.values()]
        places = [place * block + HEAD + (nth + 0.5) * BAR for place in range(len(shares))]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": legend_name(name),
                "x": np.array([share or 0.0 for share in shares]),
                "y": np.array(places),
                "width": BAR - 3,
                "marker": {
                    "color": look.colour,
                    "pattern": {
                        "shape": HATCHES[nth] if bars > 1 else "",
                        "fillmode": "overlay",
                        "fgcolor": PAPER,
                        "size": 6,
                        "solidity": 0.25,
                    },
                },
                "customdata": list(info.rows),
                "hovertemplate": f"{legend_name(name)}<br>"
                "%{customdata}: %{x:.1%}<extra></extra>",
            }
        )
        spec["annotations"] += [_value(share, y) for share, y in zip(shares, places, strict=True)]
    spec["annotations"] += [
        _row_name(text, place * block + HEAD) for place, text in enumerate(info.rows)
    ]
    return {"data": data, "layout": spec}


def _looks(bars: int) -> tuple[Look, ...]:
    return RUN_LOOKS if bars > 1 else RUN_LOOKS[1:]


def _value(share: float | None, y: float) -> Spec:
    """Return a bar's number: inside its end where it is long, behind it where it is short."""
    inside = share is not None and share > 0.5
    return {
        "text": f"<b>{'no request' if share is None else share_words(share)}</b>",
        "x": share or 0.0,
        "xref": "x",
        "xanchor": "right" if inside else "left",
        "xshift": -5 if inside else 5,
        "y": y,
        "yref": "y",
        "yanchor": "middle",
        "showarrow": False,
        "borderpad": 0,
        "bgcolor": PAPER,
        "font": {"size": 12, "color": INK},
    }


def _row_name(text: str, y: float) -> Spec:
    return {
        "text": text,
        "x": 0,
        "xref": "x",
        "xanchor": "left",
        "y": y,
        "yref": "y",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": INK},
    }


def attainment_columns(info: AttainmentInfo) -> dict[str, list[object]]:
    """Return the shares as a table, a row for each target and a column for each run."""
    columns: dict[str, list[object]] = {"target": list(info.rows)}
    for nth, name in enumerate(info.names):
        columns[name] = [row[nth] for row in info.rows.values()]
    return columns


def attainment_alt(info: AttainmentInfo) -> str:
    """Return the shares for those who cannot see them."""
    told = []
    for text, shares in info.rows.items():
        each = [
            f"{name} {'no request' if share is None else share_words(share)}"
            for name, share in zip(info.names, shares, strict=True)
        ]
        told.append(f"{text}: {', '.join(each)}")
    runs = count(len(info.names), "run")
    return f"Targets met, {runs}. {info.title}. {'. '.join(info.caption)}. {'; '.join(told)}."
