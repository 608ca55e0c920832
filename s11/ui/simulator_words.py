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
from s11.ui.runs import MAX_STEPS, run
from s11.verdict import Explanation, Verdict
from s11.words import count

ALIKE = ("vllm_v1", "tensorrt_llm", "slo_adaptive")  # often the same as the chapter's


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


def words(experiment: Experiment, explanation: Explanation) -> Words:
    """Return what is said of an experiment's run."""
    stopped = explanation.verdict is Verdict.STOPPED
    alike = experiment.policy in ALIKE and _as_the_chapters(experiment)
    return Words(
        headline=explanation.headline,
        sentence=explanation.sentence,
        warning=f"This page runs at most {count(MAX_STEPS, 'step')} of a scenario; the pictures "
        "and figures show the part that was run."
        if stopped
        else "",
        alike=TITLES[experiment.policy] if alike else "",
        trade_off=_trade_off(experiment),
    )


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
