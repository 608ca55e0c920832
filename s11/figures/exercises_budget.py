"""What each step holds under a token budget, with chunking off and on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.exercises_budget import BudgetNumbers, BudgetSolution
from s11.figures.theme import (
    DECODE,
    INK,
    MUTED,
    PAPER,
    PREFILL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.words import count, ms

HEIGHT, BELOW_PLOT, HEAD_PX = 430, 100, 18
MOST_SHOWN, FEWEST_SHOWN = 40, 5
OFF_DOMAIN, ON_DOMAIN = (0.58, 1.0), (0.0, 0.42)
ROOM = 1.2  # of the budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BudgetSteps:
    """What the picture shows: the first steps after the prompt's arrival.

    slices: prompt tokens of each step, chunking on; 0 after its end.
    """

    numbers: BudgetNumbers
    slices: NDArray[np.int64]  # (shown,)
    steps: int
    ttft_ms: float
    never: bool

    @property
    def title(self) -> str:
        """The finding, in about 45 characters."""
        off = "never" if self.never else "at once"
        return f"Off: {off}. On: {count(self.steps, 'step')}"

    @property
    def caption(self) -> list[str]:
        """The parameters, lines of about 60 characters."""
        asked = self.numbers
        return [
            f"prompt {count(asked.prompt_tokens, 'token')}, {count(asked.users, 'stream')}, "
            f"budget {asked.budget_tokens:,}",
            f"first token after {ms(self.ttft_ms)}; tokens in each step, s11",
        ]


def budget_steps(solution: BudgetSolution) -> BudgetSteps:
    """Take the first steps out of a solution."""
    shown = np.zeros(min(MOST_SHOWN, max(FEWEST_SHOWN, solution.steps)), np.int64)
    known = solution.slices[: len(shown)]
    shown[: len(known)] = known
    return BudgetSteps(
        numbers=solution.numbers,
        slices=shown,
        steps=solution.steps,
        ttft_ms=solution.ttft_ms,
        never=solution.never,
    )


def budget_figure(info: BudgetSteps) -> Spec:
    """Return the Plotly spec: chunking off above, on below, on the same axes."""
    spec = layout(
        title=info.title,
        caption=info.caption,
        meta={"figure": "exercise-budget", "steps": info.steps, "never": info.never},
        height=HEIGHT,
    )
    shown, budget = len(info.slices), info.numbers.budget_tokens
    rest = f", first {shown} of {info.steps:,}" if info.steps > shown else ""
    tokens = {"range": [0, ROOM * budget], "nticks": 4, "tickformat": ",", "fixedrange": True}
    spec |= {
        "showlegend": True,
        "legend": bottom_legend(),
        "barmode": "stack",
        "bargap": 0.15,
        "hovermode": "x unified",
        "xaxis": axis(
            range=[0.4, shown + 0.6],
            anchor="y2",
            dtick=max(1, shown // 8),
            tick0=1,
            title={"text": f"step{rest}"},
            unifiedhovertitle={"text": "step %{x}"},
        ),
        "yaxis": axis(domain=list(OFF_DOMAIN), title={"text": "tokens"}, **tokens),
        "yaxis2": axis(domain=list(ON_DOMAIN), title={"text": "tokens"}, **tokens),
        "shapes": [_budget_line(budget, y) for y in ("y", "y2")],
        "annotations": _labels(info),
    }
    top = spec["margin"]["t"] + HEAD_PX
    spec["margin"] = {**spec["margin"], "t": top, "b": BELOW_PLOT}
    users = np.full(shown, info.numbers.users, np.int32)
    return {
        "data": [
            _bars("decode tokens", users, "y", first=True),
            _bars("decode tokens", users, "y2", first=False),
            _bars("prompt tokens", info.slices.astype(np.int32), "y2", first=True),
        ],
        "layout": spec,
    }


def budget_alt(info: BudgetSteps) -> str:
    """Return the picture's numbers for those who cannot see it."""
    asked = info.numbers
    most = int(info.slices.max())
    return (
        f"Tokens in each step, chunking off and on: {info.title}. {'; '.join(info.caption)}. Off: "
        f"{count(asked.users, 'decode token')} in every step and none of the prompt. On: up to "
        f"{count(most, 'prompt token')} beside them."
    )


def budget_columns(info: BudgetSteps) -> dict[str, list[Any]]:
    """Return the picture's data, a row for each step."""
    shown = len(info.slices)
    return {
        "step": list(range(1, shown + 1)),
        "decode_tokens": [info.numbers.users] * shown,
        "prompt_tokens_chunking_off": [0] * shown,
        "prompt_tokens_chunking_on": info.slices.tolist(),
    }


def _bars(name: str, tokens: NDArray[np.int32], y: str, *, first: bool) -> Spec:
    decodes = name == "decode tokens"
    pattern = {"shape": "/", "fgcolor": PAPER, "size": 5, "solidity": 0.25, "fillmode": "overlay"}
    return {
        "type": "bar",
        "name": name,
        "legendgroup": name,
        "showlegend": first,
        "x0": 1,
        "dx": 1,
        "y": tokens,
        "xaxis": "x",
        "yaxis": y,
        "marker": {
            "color": DECODE if decodes else PREFILL,
            "line": {"width": 0},
            **({"pattern": pattern} if decodes else {}),
        },
        "hovertemplate": f"{name} %{{y:,}}<extra></extra>",
    }


def _budget_line(budget: int, y: str) -> Spec:
    return {
        "type": "line",
        "xref": "paper",
        "yref": y,
        "x0": 0,
        "x1": 1,
        "y0": budget,
        "y1": budget,
        "line": {"color": INK, "width": 1.5, "dash": "dash"},
    }


def _labels(info: BudgetSteps) -> list[Spec]:
    budget, prompt = info.numbers.budget_tokens, info.numbers.prompt_tokens

    def label(text: str, **place: Any) -> Spec:
        return {
            "text": text,
            "showarrow": False,
            "font": {"size": 12, "color": INK},
            "xref": "paper",
            **place,
        }

    heads = [
        label(f"<b>{text}</b>", x=0, xanchor="left", y=top, yref="paper", yanchor="bottom")
        for text, (_, top) in (("Chunking off", OFF_DOMAIN), ("Chunking on", ON_DOMAIN))
    ]
    return [
        *heads,
        label(
            f"budget {budget:,}",
            x=1, xanchor="right", y=budget, yref="y", yanchor="bottom",
        ),
        label(
            f"the prompt wants {prompt:,} at once:<br>no step has room for it",
            x=0.5, xanchor="center", y=0.6 * budget, yref="y", yanchor="middle",
            font={"size": 13, "color": STALL_TEXT},
        ),
        label(
            f"up to {count(int(info.slices.max()), 'prompt token')} a step",
            x=1, xanchor="right", y=budget, yref="y2", yanchor="bottom",
            font={"size": 12, "color": MUTED},
        ),
    ]  # fmt: skip
