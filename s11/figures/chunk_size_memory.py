"""What a token budget costs: KV memory, and with it the throughput of a busy load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from s11.budgets import BudgetTried, BusyLoad
from s11.figures.chunk_size_info import octaves, short_caption
from s11.figures.theme import DECODE, INK, MUTED, PREFILL, STALL_TEXT, Spec, axis, bottom_legend
from s11.figures.theme import layout as base_layout
from s11.words import count

HEIGHT = 540
DOMAINS = ((0.56, 0.94), (0.0, 0.4))
HEADS = ("KV tokens that are left", "Output tokens/s of the busy load")
FELT_SHARE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCost:
    """Budgets on one machine under one busy load; `planned` of them were to run.

    simulated, calibration: for the caption. set_budget: what the page advises; None: none.
    """

    machine: str
    simulated: str
    calibration: str
    load: BusyLoad
    tried: tuple[BudgetTried, ...]
    planned: int
    set_budget: int | None

    @property
    def ran(self) -> tuple[BudgetTried, ...]:
        """Return the budgets that served the load."""
        return tuple(one for one in self.tried if one.output_tokens_per_s)

    @property
    def lost_share(self) -> float:
        """Return what the largest budget that ran loses by its own memory, 0 where nothing."""
        if not self.ran:
            return 0.0
        last = self.ran[-1]
        same = last.same_pool_tokens_per_s
        return max(0.0, 1 - (last.output_tokens_per_s or 0.0) / same) if same else 0.0


def memory_title(cost: MemoryCost) -> str:
    """Return the finding, in 45 characters at most."""
    if not cost.ran:
        return "No budget serves this load here"
    if cost.lost_share < FELT_SHARE:
        return "Memory is not what limits here"
    return f"A budget of {cost.ran[-1].token_budget:,} serves {cost.lost_share:.0%} less"


def memory_figure(cost: MemoryCost) -> Spec:
    """Return the Plotly spec: KV tokens left, and throughput, over the same budgets."""
    load = cost.load
    caption = [
        cost.machine,
        cost.simulated,
        cost.calibration,
        short_caption(
            f"{count(load.clients, 'client')}, prompts of "
            f"{load.prompt_tokens:,}, answers of {load.output_tokens:,}"
        ),
    ]
    if len(cost.tried) < cost.planned:
        caption.append(f"stopped after {len(cost.tried)} of {cost.planned} budgets")
    spec = base_layout(
        title=memory_title(cost),
        caption=caption,
        meta={
            "figure": "chunk-size-memory",
            "kv_tokens": [one.kv_tokens for one in cost.tried],
            "output_tokens_per_s": [one.output_tokens_per_s for one in cost.tried],
        },
        height=HEIGHT,
    )
    budgets = [one.token_budget for one in cost.tried] or [512]
    marks, words = octaves(min(budgets), max(budgets), most=8)
    most_kv = max([one.kv_tokens for one in cost.tried], default=0)
    rates = [r for one in cost.tried for r in (one.output_tokens_per_s, one.same_pool_tokens_per_s)]
    most_rate = max([rate for rate in rates if rate], default=0.0)
    spec |= {
        "showlegend": True,
        "legend": bottom_legend(),
        "hovermode": "x unified",
        "xaxis": axis(
            type="log",
            range=[math.log10(min(budgets) / 1.2), math.log10(max(budgets) * 1.2)],
            tickvals=marks,
            ticktext=words,
            anchor="y2",
            title={"text": "token budget of a step (tokens)"},
            hoverformat=",d",
            fixedrange=True,
        ),
        "annotations": _notes(cost),
        "shapes": _shapes(cost, min(budgets), max(budgets)),
    }
    for name, ends, most in (("yaxis", DOMAINS[0], most_kv), ("yaxis2", DOMAINS[1], most_rate)):
        spec[name] = axis(
            domain=list(ends),
            range=[0, 1.15 * most or 1.0],
            nticks=5,
            tickformat="~s",
            fixedrange=True,
        )
    spec["margin"] = {**spec["margin"], "b": 104, "l": 58}
    return {"data": _traces(cost.tried), "layout": spec}


def _traces(tried: tuple[BudgetTried, ...]) -> list[Spec]:
    x = np.array([one.token_budget for one in tried], np.int32)

    def trace(name: str, values: list[float | None], y: str, unit: str, **look: Any) -> Spec:
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": x,
            "y": np.array([math.nan if v is None else v for v in values], np.float32),
            "xaxis": "x",
            "yaxis": y,
            "hovertemplate": f"%{{y:,.0f}} {unit}",
            **look,
        }

    return [
        trace("KV tokens left", [one.kv_tokens for one in tried], "y", "tokens",
              line={"color": DECODE, "width": 2.5},
              marker={"symbol": "square", "size": 7, "color": DECODE}),
        trace("with the smallest budget's pool", [one.same_pool_tokens_per_s for one in tried],
              "y2", "tokens/s", line={"color": MUTED, "width": 1.5, "dash": "dash"},
              marker={"symbol": "circle-open", "size": 10, "color": MUTED}),
        trace("with its own pool", [one.output_tokens_per_s for one in tried], "y2", "tokens/s",
              line={"color": PREFILL, "width": 2.5},
              marker={"symbol": "circle", "size": 7, "color": PREFILL}),
    ]  # fmt: skip


def _shapes(cost: MemoryCost, low: int, high: int) -> list[Spec]:
    at = cost.set_budget
    if at is None or not low / 1.2 <= at <= high * 1.2:
        return []
    return [
        {
            "type": "line",
            "layer": "below",
            "xref": "x",
            "yref": f"{y} domain",
            "x0": at,
            "x1": at,
            "y0": 0,
            "y1": 1,
            "line": {"color": INK, "width": 1.5, "dash": "dot"},
        }
        for y in ("y", "y2")
    ]


def _notes(cost: MemoryCost) -> list[Spec]:
    notes: list[Spec] = [
        {
            "text": f"<b>{head}</b>",
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": top,
            "yref": "paper",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 12, "color": INK},
        }
        for head, (_, top) in zip(HEADS, DOMAINS, strict=True)
    ]
    for one in cost.tried:
        if one.output_tokens_per_s is None:
            notes.append(
                {
                    "text": "does not<br>fit" if not one.kv_tokens else "not<br>served",
                    "x": math.log10(one.token_budget),
                    "xref": "x",
                    "y": 0,
                    "yref": "y2 domain",
                    "yanchor": "bottom",
                    "showarrow": False,
                    "font": {"size": 12, "color": STALL_TEXT},
                }
            )
    budgets = [one.token_budget for one in cost.tried]
    if cost.set_budget and budgets and min(budgets) / 1.2 <= cost.set_budget <= 1.2 * max(budgets):
        late = cost.set_budget > math.sqrt(min(budgets) * max(budgets))
        notes.append(
            {
                "text": f"set: {cost.set_budget:,}",
                "x": math.log10(cost.set_budget),
                "xref": "x",
                "xanchor": "right" if late else "left",
                "xshift": -5 if late else 5,
                "y": 0,
                "yref": "y domain",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 12, "color": INK},
            }
        )
    return notes


def memory_words(cost: MemoryCost) -> str:
    """Return what the budgets cost this load, in sentences with their numbers."""
    if not cost.ran:
        reasons = [one.refused for one in cost.tried if one.refused]
        return f"No budget serves this load: {reasons[0]}." if reasons else "Nothing ran yet."
    first, last, best = cost.tried[0], cost.ran[-1], max(cost.ran, key=_rate)
    each = cost.load.prompt_tokens + cost.load.output_tokens
    holds = first.kv_tokens // each
    parts = [
        f"A budget of {first.token_budget:,} leaves {first.kv_tokens:,} KV tokens, "
        f"{'all' if holds >= cost.load.clients else str(holds)} of the "
        f"{count(cost.load.clients, 'client')}' requests at once; {last.token_budget:,} leaves "
        f"{last.kv_tokens:,}, as each budgeted token needs room for its activations."
    ]
    if cost.lost_share >= FELT_SHARE:
        parts.append(
            f"Output is best at {best.token_budget:,}: {_rate(best):,.0f} tokens/s. At "
            f"{last.token_budget:,} it is **{_rate(last):,.0f}**; with the smallest budget's pool "
            f"it would be {last.same_pool_tokens_per_s or 0:,.0f}, so that budget's memory costs "
            f"**{cost.lost_share:.0%}** of the throughput."
        )
    else:
        parts.append(
            f"At {last.token_budget:,} output is {_rate(last):,.0f} tokens/s, and with the "
            f"smallest budget's pool it would be {last.same_pool_tokens_per_s or 0:,.0f}: "
            "here memory is not what limits. On a tighter machine it is (see the links on top)."
        )
    unfit = [one for one in cost.tried if not one.kv_tokens]
    if unfit:
        parts.append(f"Under {unfit[0].token_budget:,} the model no longer fits.")
    return " ".join(parts)


def _rate(one: BudgetTried) -> float:
    return one.output_tokens_per_s or 0.0


def memory_alt(cost: MemoryCost) -> str:
    """Return the budgets' numbers for those who cannot see them."""
    told = [
        f"{count(one.token_budget, 'token')}: {one.kv_tokens:,} KV tokens, "
        + (one.refused or f"{_rate(one):,.0f} output tokens/s")
        for one in cost.tried
    ]
    return f"Token budgets on {cost.machine}. {memory_title(cost)}. {'; '.join(told)}."


def memory_columns(cost: MemoryCost) -> dict[str, list[Any]]:
    """Return the budgets as a table, a row for each."""
    names = ("token_budget", "kv_tokens", "output_tokens_per_s", "same_pool_tokens_per_s")
    columns: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in cost.tried] for name in (*names, "preemptions")
    }
    columns["why_not"] = [one.refused or None for one in cost.tried]
    return columns
