"""Steps by their tokens: decodes first, then what the budget leaves for the prompt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.learn_look import label, plain_axis, projected, scene_layout
from s11.figures.theme import DECODE, INK, PAPER, PREFILL, Spec
from s11.words import count, ms

Ints = NDArray[np.int64]

HEIGHT, WIDE_HEIGHT = 420, 460


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BudgetInfo:
    """The tokens of each step against the token budget.

    steps_shown: how long the axis is.
    """

    decode_tokens: Ints  # (steps,)
    prefill_tokens: Ints  # (steps,)
    budget_tokens: int
    streaming_users: int
    prompt_tokens: int
    longest_gap_ms: float
    steps_shown: int
    formula: str

    @property
    def left_tokens(self) -> int:
        """What the decodes leave of the budget."""
        return self.budget_tokens - self.streaming_users

    @property
    def prefill_steps(self) -> int:
        """How many steps carry a slice of the prompt."""
        return int(np.count_nonzero(self.prefill_tokens))

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        return f"{count(self.streaming_users, 'decode')} first, {self.left_tokens:,} tokens left"


def budget_figure(info: BudgetInfo) -> Spec:
    """Return the Plotly spec: a bar for each step."""
    spec = scene_layout(
        title=info.title,
        caption=[
            f"{info.prompt_tokens:,}-token prompt, budget {info.budget_tokens:,} tokens a step",
            f"{info.formula}, s11",
        ],
        meta={
            "figure": "learn-budget",
            "streaming_users": info.streaming_users,
            "prefill_steps": info.prefill_steps,
            "longest_gap_ms": info.longest_gap_ms,
        },
        height=HEIGHT,
    )
    spec |= {
        "barmode": "stack",
        "bargap": 0.12,
        "xaxis": plain_axis(range=[0.4, info.steps_shown + 0.6], title={"text": "step"}),
        "yaxis": plain_axis(
            range=[0, 1.18 * info.budget_tokens], title={"text": "tokens in the step"}
        ),
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "yref": "y",
                "x0": 0,
                "x1": 1,
                "y0": info.budget_tokens,
                "y1": info.budget_tokens,
                "line": {"color": INK, "width": 2, "dash": "dash"},
            }
        ],
        "annotations": [
            label(
                f"token budget {info.budget_tokens:,}",
                x=1,
                y=info.budget_tokens,
                xref="paper",
                xanchor="right",
                yanchor="bottom",
            )
        ],
    }
    steps = np.arange(1, len(info.decode_tokens) + 1)
    pattern = {"shape": "/", "fgcolor": PAPER, "size": 5, "solidity": 0.25, "fillmode": "overlay"}
    kinds: list[tuple[str, Ints, Spec]] = [
        ("decodes, one token each", info.decode_tokens, {"color": DECODE, "pattern": pattern}),
        ("slice of the prompt", info.prefill_tokens, {"color": PREFILL}),
    ]
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": steps,
            "y": tokens,
            "marker": {**look, "line": {"width": 0}},
            "hovertemplate": f"step %{{x}}, {name}: %{{y:,}} tokens<extra></extra>",
        }
        for name, tokens, look in kinds
    ]
    return projected({"data": traces, "layout": spec}, height=WIDE_HEIGHT)


def budget_alt(info: BudgetInfo) -> str:
    """Return the steps' numbers for those who cannot see them."""
    return (
        f"Tokens by step, budget {info.budget_tokens:,}: {info.title}. "
        f"{count(info.prefill_steps, 'step')} of {len(info.decode_tokens)} carry a slice of the "
        f"{info.prompt_tokens:,}-token prompt, of {info.left_tokens:,} tokens at most; every step "
        f"gives each of {count(info.streaming_users, 'stream')} a token, and the longest gap is "
        f"{ms(info.longest_gap_ms)}."
    )
