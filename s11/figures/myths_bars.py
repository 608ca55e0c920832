"""Panels of horizontal bars under one head: what is the same in each, and what is not."""

from __future__ import annotations

from dataclasses import dataclass

from s11.figures.theme import INK, MUTED, PAPER, Spec, axis, bottom_legend, layout

BAR_PX, PANEL_HEAD_PX, PANEL_GAP_PX = 36, 24, 14
LEGEND_PX, LEGEND_ENTRY_PX = 66, 96  # three rows on a phone
TEXT_ROOM = 1.36  # of the longest bar: its figure stands behind it, on a phone too
LABEL_PX = 104


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kind of bar: what it is called, and its look."""

    name: str
    colour: str
    pattern: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row of a panel: the length of each of its parts, and the figure behind it."""

    label: str
    parts: tuple[tuple[Part, float], ...]
    text: str

    @property
    def length(self) -> float:
        """Return the length of the whole bar."""
        return sum(value for _, value in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Bars of one unit, and what they measure. unit: as the pointer's label says it."""

    head: str
    unit: str
    bars: tuple[Bar, ...]


def bars_figure(
    panels: tuple[Panel, ...],
    *,
    title: str,
    caption: list[str],
    meta: Spec,
    legend: bool,
) -> Spec:
    """Return the Plotly spec of the panels, one under the other, each on its own scale."""
    inner_px = sum(_panel_px(panel) for panel in panels) + PANEL_GAP_PX * (len(panels) - 1)
    spec = layout(title=title, caption=caption, meta=meta, height=1)
    bottom_px = 12 + (LEGEND_PX if legend else 0)
    top_px = spec["margin"]["t"] + 4
    spec |= {
        "height": top_px + inner_px + bottom_px,
        "margin": {"l": LABEL_PX, "r": 12, "t": top_px, "b": bottom_px},
        "barmode": "stack",
        "bargap": 0.3,
        "hovermode": "closest",
        "showlegend": legend,
        "annotations": [],
    }
    if legend:
        spec["legend"] = {**bottom_legend(), "entrywidth": LEGEND_ENTRY_PX}
    data: list[Spec] = []
    seen: set[str] = set()
    top = 1.0
    for number, panel in enumerate(panels, start=1):
        suffix = "" if number == 1 else str(number)
        head = PANEL_HEAD_PX / inner_px
        foot = top - _panel_px(panel) / inner_px
        longest = max((bar.length for bar in panel.bars), default=0.0) or 1.0
        spec[f"xaxis{suffix}"] = axis(
            range=[0, TEXT_ROOM * longest],
            anchor=f"y{suffix}",
            showgrid=False,
            showticklabels=False,
            fixedrange=True,
        )
        spec[f"yaxis{suffix}"] = axis(
            domain=[max(0.0, foot), top - head],
            range=[len(panel.bars) - 0.5, -0.5],
            tickvals=list(range(len(panel.bars))),
            ticktext=[bar.label for bar in panel.bars],
            anchor=f"x{suffix}",
            showgrid=False,
            fixedrange=True,
        )
        spec["annotations"] += [_head(panel.head, top - head), *_texts(panel, suffix)]
        data += _traces(panel, suffix, seen)
        top = foot - PANEL_GAP_PX / inner_px
    return {"data": data, "layout": spec}


def _panel_px(panel: Panel) -> int:
    return PANEL_HEAD_PX + BAR_PX * len(panel.bars)


def _traces(panel: Panel, suffix: str, seen: set[str]) -> list[Spec]:
    """Return a trace for each part; a legend names it once in the whole figure."""
    parts = list(dict.fromkeys(part for bar in panel.bars for part, _ in bar.parts))
    traces = []
    for part in parts:
        rows = [n for n, bar in enumerate(panel.bars) if part in dict(bar.parts)]
        pattern = {"shape": part.pattern, "size": 7, "solidity": 0.3, "fgcolor": INK}
        marker: Spec = {"color": part.colour, "line": {"color": PAPER, "width": 1}}
        if part.pattern:
            marker["pattern"] = {**pattern, "fillmode": "overlay"}
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": part.name,
                "legendgroup": part.name,
                "showlegend": part.name not in seen,
                "x": [dict(panel.bars[row].parts)[part] for row in rows],
                "y": rows,
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
                "marker": marker,
                "hovertemplate": f"{part.name}: %{{x:,.4~g}} {panel.unit}<extra></extra>",
            }
        )
        seen.add(part.name)
    return traces


def _head(text: str, bottom: float) -> Spec:
    return {
        "text": f"<b>{text}</b>",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 12 - LABEL_PX,
        "y": bottom,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13, "color": INK},
    }


def _texts(panel: Panel, suffix: str) -> list[Spec]:
    return [
        {
            "text": bar.text,
            "x": bar.length,
            "xref": f"x{suffix}",
            "xanchor": "left",
            "xshift": 5,
            "y": row,
            "yref": f"y{suffix}",
            "showarrow": False,
            "font": {"size": 13, "color": INK if bar.parts else MUTED},
        }
        for row, bar in enumerate(panel.bars)
    ]
