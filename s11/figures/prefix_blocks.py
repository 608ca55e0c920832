"""The KV blocks of every request as a picture: computed, hit, computed again."""

from __future__ import annotations

import numpy as np

from s11.figures.mask import NO_COLOUR
from s11.figures.prefix import hatched
from s11.figures.prefix_blocks_info import NAMES, BlocksInfo
from s11.figures.theme import (
    DECODE,
    IDLE,
    INK,
    PAPER,
    PREFILL,
    STALL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.figures.timeline_marks import segments
from s11.prefix_blocks import BlockKind
from s11.words import count

FEW_BLOCKS = 10
ROW_HEIGHT, HEAD, FEWEST_ROWS = 30, 96, 4  # px
AXIS_ROOM, LEGEND_ROW, LEGEND_ENTRY = 46, 19, 88  # px: two entries in a row on a phone
BAR = 0.76  # of a row
NUMBER_ROOM, MARK_ROOM = 0.11, 0.012  # of the axis
AGAIN = "#F0E442"  # Okabe & Ito's yellow: by a rule, no waste that a larger pool would save
LATER = "#CC79A7"

LOOKS: dict[BlockKind, tuple[str, Spec]] = {
    BlockKind.HIT: (NO_COLOUR, hatched()),
    BlockKind.NEW: (PREFILL, {}),
    BlockKind.EVICTED: (STALL, {"shape": "x", "fgcolor": PAPER}),
    BlockKind.LAST_TOKEN: (AGAIN, {"shape": ".", "fgcolor": "#1A1A1A"}),
    BlockKind.NOT_YET: (LATER, {"shape": "\\", "fgcolor": PAPER}),
    BlockKind.NOT_WHOLE: (AGAIN, {"shape": "|", "fgcolor": "#1A1A1A"}),
    BlockKind.OUTPUT: (
        DECODE,
        {"shape": ".", "fgcolor": PAPER, "solidity": 0.15},
    ),
}


def blocks_figure(info: BlocksInfo) -> Spec:
    """Return the Plotly spec of the blocks."""
    rows, traces = max(len(info.shown), FEWEST_ROWS), _bars(info)
    foot = AXIS_ROOM + LEGEND_ROW * -(-len(traces) // 2)
    spec = layout(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "prefix-blocks",
            **{kind.name.lower(): info.blocks(kind) for kind in BlockKind},
        },
        height=HEAD + ROW_HEIGHT * rows + foot,
    )
    spec |= {
        "barmode": "overlay",
        "bargap": 0,
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": LEGEND_ENTRY},
        "hovermode": "closest",
        "xaxis": axis(
            range=[0, info.widest * 1.005],
            tickformat=",",
            dtick=1 if info.widest <= FEW_BLOCKS else None,
            showgrid=False,
            title={"text": f"KV block (of {count(info.block_size, 'token')})"},
        ),
        "yaxis": axis(
            range=[rows - 0.4, -0.6],
            tickvals=list(range(len(info.shown))),
            ticktext=list(info.names[: len(info.shown)]),
            showgrid=False,
            fixedrange=True,
        ),
        "shapes": _grid(info),
        "annotations": [*_numbers(info), *_folded(info)],
    }
    spec["margin"] = {**spec["margin"], "l": 78, "b": foot}
    return {"data": traces, "layout": spec}


def _bars(info: BlocksInfo) -> list[Spec]:
    by_kind: dict[BlockKind, list[tuple[int, int, int]]] = {kind: [] for kind in LOOKS}
    for place, row in enumerate(info.shown):
        for kind, start, end in row.runs():
            by_kind[kind].append((place, start, end))
    traces = []
    for kind, (colour, pattern) in LOOKS.items():
        runs, name = by_kind[kind], NAMES[kind]
        if not runs and kind not in (BlockKind.HIT, BlockKind.NEW):
            continue
        outline = {"color": IDLE if kind is BlockKind.HIT else PAPER, "width": 1}
        look = {"size": 7, "solidity": 0.3, "fillmode": "overlay", "fgopacity": 1, **pattern}
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "base": np.array([start for _, start, _ in runs], np.int32),
                "x": np.array([end - start for _, start, end in runs], np.int32),
                "y": np.array([place for place, _, _ in runs], np.int16),
                "width": BAR,
                "customdata": [_hover(info, *run) for run in runs],
                "marker": {
                    "color": colour,
                    "line": outline,
                    **({"pattern": look} if pattern else {}),
                },
                "hovertemplate": f"%{{customdata}}: {name}<extra></extra>",
            }
        )
    return traces


def _hover(info: BlocksInfo, place: int, start: int, end: int) -> str:
    size = info.block_size
    blocks = f"block {start:,}" if end - start == 1 else f"blocks {start:,}–{end - 1:,}"
    last = min(end * size, info.shown[place].held_tokens) - 1
    return f"{info.names[place]}, {blocks} (tokens {start * size:,}–{last:,})"


def _grid(info: BlocksInfo) -> list[Spec]:
    """Part the cells by thin lines in the colour of the paper."""
    lines = []
    for place, row in enumerate(info.shown):
        for at in range(info.blocks_per_cell, len(row.kinds), info.blocks_per_cell):
            lines.append(((at, place - BAR / 2), (at, place + BAR / 2)))
    return segments(lines, yref="y", line={"color": PAPER, "width": 1})


def _numbers(info: BlocksInfo) -> list[Spec]:
    """Write the number of blocks into the long runs; point at short ones that matter."""
    notes: list[Spec] = []
    for place, row in enumerate(info.shown):
        for kind, start, end in row.runs():
            share = (end - start) / info.widest
            here: Spec = {"xref": "x", "yref": "y", "x": (start + end) / 2, "showarrow": False}
            if share >= NUMBER_ROOM and kind is not BlockKind.OUTPUT:
                notes.append(
                    {
                        **here,
                        "text": f"{end - start:,}",
                        "y": place,
                        "font": {"size": 12, "color": INK},
                        "bgcolor": PAPER,
                        "borderpad": 1,
                    }
                )
            elif share < MARK_ROOM and kind in (BlockKind.EVICTED, BlockKind.LAST_TOKEN):
                notes.append(
                    {
                        **here,
                        "text": "▼",
                        "y": place - BAR / 2,
                        "yshift": 4,
                        "font": {"size": 11, "color": STALL_TEXT},
                    }
                )
    return notes


def _folded(info: BlocksInfo) -> list[Spec]:
    folded = len(info.rows) - len(info.shown)
    if not folded:
        return []
    return [
        {
            "text": f"+ {count(folded, 'more row')}",
            "x": 1,
            "xref": "paper",
            "xanchor": "right",
            "y": 0,
            "yref": "paper",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 12, "color": INK},
            "bgcolor": PAPER,
        }
    ]
