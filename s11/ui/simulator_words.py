"""What the simulator page says below its picture about the run that is shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from s11.costs import RooflineCost
from s11.experiment import Experiment
from s11.presets import TITLES
from s11.sweeps import SweepPoint, longest_prompt_tokens
from s11.trade_off import trade_off
from s11.ui.runs import MAX_STEPS, Run, run
from s11.verdict import Explanation, Verdict
from s11.words import count, ms, times

ALIKE = ("vllm_v1", "tensorrt_llm", "slo_adaptive")  # often the same as the chapter's
NAMED_FACTOR = 2
"""From here on a difference is told as a factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The sentence and what goes with it, as plain text; "" where there is nothing to say.

    alike: the scheduler that does the same here as the chapter's.
    """

    headline: str
    sentence: str
    warning: str
    alike: str
    trade_off: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def words(experiment: Experiment, explanation: Explanation, pinned: Run | None = None) -> Words:
    """Return what is said of an experiment's run; pinned: A, which it is then held against."""
    stopped = explanation.verdict is Verdict.STOPPED
    alike = experiment.policy in ALIKE and _as_the_chapters(experiment)
    return Words(
        headline=explanation.headline,
        sentence=explanation.sentence
        + (f" {against_pinned(run(experiment), pinned)}" if pinned else ""),
        warning=f"This page runs at most {count(MAX_STEPS, 'step')} of a scenario; the pictures "
        "and figures show the part that was run."
        if stopped
        else "",
        alike=TITLES[experiment.policy] if alike else "",
        trade_off=_trade_off(experiment),
    )


def against_pinned(now: Run, pinned: Run) -> str:
    """Return how the longest stall and the TTFT differ from those of A, the pinned run."""
    mine, its = now.metrics, pinned.metrics
    stall = _change("longest stall", mine.longest_stall_ms, its.longest_stall_ms, ("none", "none"))
    ttft = _change("TTFT", mine.ttft_ms, its.ttft_ms, (_no_token(now), _no_token(pinned)))
    waiting = ", which leaves a prompt waiting for ever" if pinned.result.never_scheduled else ""
    return f"Against A, the pinned run{waiting}: {stall}; {ttft}."


def _no_token(this: Run) -> str:
    return "never" if this.result.never_scheduled else "none yet"


def _change(name: str, mine: float | None, its: float | None, lacking: tuple[str, str]) -> str:
    """Return a figure beside A's, and by how much it differs; lacking: what is said for None."""
    text = lacking[0] if mine is None else ms(mine)
    other = lacking[1] if its is None else ms(its)
    if text == other:
        return f"{name} {text}, as there"
    told = f"{name} {text} instead of {other}"
    if not mine or not its:
        return told
    factor = max(mine, its) / min(mine, its)
    if factor < NAMED_FACTOR:
        return f"{told}, {ms(abs(mine - its))} {'more' if mine > its else 'less'}"
    return f"{told}, {times(factor)} {'as long' if mine > its else 'less'}"


def lay_words(told: Words) -> None:
    """Lay the words as Streamlit's own text."""
    st.markdown(f"**{told.headline}.** {told.sentence}")
    if told.warning:
        st.warning(told.warning, icon=":material/hourglass_disabled:")
    if told.alike:
        st.markdown(
            f":small[With this load {told.alike} does just what the chapter's "
            "scheduler does; [Compare schedulers](compare) shows where they part.]"
        )
    if told.trade_off:
        st.markdown(f":small[{told.trade_off}]")


def _trade_off(experiment: Experiment) -> str:
    chunk = experiment.limits.chunk_tokens
    if not experiment.chunking or not chunk:
        return ""
    prompt_tokens = longest_prompt_tokens(experiment)
    shown = min(chunk, prompt_tokens)
    smaller = _point(experiment, shown // 2) if shown > 1 else None
    larger = _point(experiment, min(shown * 2, prompt_tokens)) if shown < prompt_tokens else None
    on_a_machine = isinstance(experiment.cost, RooflineCost)
    return trade_off(
        smaller,
        larger,
        now=run(experiment).metrics,
        repeated="the reads of weights and prefix" if on_a_machine else "the fixed cost",
    )


def _as_the_chapters(experiment: Experiment) -> bool:
    """Return whether the chapter's scheduler gives the same steps under the same limits."""
    mine, its = run(experiment).result, run(replace(experiment, policy="chunked")).result
    return np.array_equal(mine.steps.end_ms, its.steps.end_ms)


def _point(experiment: Experiment, chunk_tokens: int) -> SweepPoint | None:
    there = run(experiment.with_chunk_tokens(chunk_tokens))
    if there.result.stopped_at_max_steps or there.result.never_scheduled:
        return None
    metrics = there.metrics
    return SweepPoint(
        chunk_tokens=chunk_tokens,
        itl_p99_ms=metrics.itl_p99_ms,
        longest_stall_ms=metrics.longest_stall_ms,
        ttft_ms=metrics.ttft_ms,
        prefill_tokens_per_s=metrics.prefill_tokens_per_s,
        steps_over_target=metrics.steps_over_target,
        step_count=metrics.step_count,
    )
