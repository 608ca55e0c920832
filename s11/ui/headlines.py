"""The four figures above the timeline, each with its change against another run, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import streamlit as st

from s11.ui.runs import Run
from s11.words import ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One figure: what it is called, its value, and how that changed."""

    label: str
    value: str
    delta: str | None
    tone: Literal["good", "bad", "off"]
    description: str | None
    about: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Against:
    """The run that the figures are held against, and what it is called."""

    run: Run
    name: str


def headlines(this: Run, against: Against | None) -> tuple[Headline, ...]:
    """Return the figures of a run; without another to hold them against, without changes."""
    mine = this.metrics
    other = against.run.metrics if against else mine
    ttft_text = ms(mine.ttft_ms)
    if mine.ttft_ms is None:
        ttft_text = "not yet" if this.result.stopped_at_max_steps else "never"
    over = mine.steps_over_target - other.steps_over_target
    rate = _difference(mine.decode_tokens_per_s, other.decode_tokens_per_s)
    held = bool(this.result.steps.held_decodes.any())
    return (
        _headline(
            "Longest stall",
            ms(mine.longest_stall_ms),
            _signed_ms(_difference(mine.longest_stall_ms, other.longest_stall_ms)),
            against,
            about="The longest gap between two tokens (inter-token latency, ITL) that a user sees.",
        ),
        _headline(
            "TTFT, long prompt",
            ttft_text,
            _signed_ms(_difference(mine.ttft_ms, other.ttft_ms))
            or (None if mine.ttft_ms else "+ more than shown"),
            against,
            about="Time to first token: from the long prompt's arrival to its first token.",
        ),
        _headline(
            "Steps over target",
            f"{mine.steps_over_target:,}",
            f"{over:+,}" if over else None,
            against,
            about="Steps that take longer than the ITL target. Streams that stand still wait "
            "longer than any one step takes.",
            note="but streams stand still" if held else None,
        ),
        _headline(
            "Decode throughput",
            f"{mine.decode_tokens_per_s or 0:,.0f} tok/s",
            f"{rate:+,.0f} tok/s" if rate and abs(rate) >= 0.5 else None,
            against,
            about="The users' tokens over this run's own time, lead-in and tail included. A run "
            "in more steps gives them more tokens meanwhile; over hours the two would even out.",
            more_is="good",
        ),
    )


def lay_headline(headline: Headline) -> None:
    """Lay a figure as one of Streamlit's own."""
    rises = not (headline.delta or "").startswith("-")
    colour: Literal["normal", "inverse", "off"] = "off"
    if headline.tone != "off":
        colour = "normal" if rises == (headline.tone == "good") else "inverse"
    st.metric(
        headline.label,
        headline.value,
        delta=headline.delta,
        delta_color=colour,
        delta_arrow="off" if colour == "off" else "auto",
        delta_description=headline.description,
        border=True,
        help=headline.about,
    )


def _headline(
    label: str,
    value: str,
    change: str | None,
    against: Against | None,
    *,
    about: str,
    more_is: Literal["good", "bad"] = "bad",
    note: str | None = None,
) -> Headline:
    """Return a figure; a note stands in the place of its change."""
    told, tone, name = None, "off", against.name if against else ""
    if against:
        told = change or f"as with {name}"
        if against.run.result.never_scheduled:  # nothing to hold it against: it never does the work
            told, change = f"{name}: never runs", None
        if note:
            told, change = note, None
        if change:
            tone = "bad" if change.startswith("-") == (more_is == "good") else "good"
    return Headline(
        label=label,
        value=value,
        delta=told,
        tone=tone,  # type: ignore[arg-type]
        description=f"vs {name}" if change and against else None,
        about=about,
    )


def _difference(mine: float | None, other: float | None) -> float | None:
    return None if mine is None or other is None else mine - other


def _signed_ms(change: float | None) -> str | None:
    if not change:
        return None
    return f"{'+' if change > 0 else '-'}{ms(abs(change))}"
