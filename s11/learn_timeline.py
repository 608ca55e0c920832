"""The simulator's timeline on axes that stay while a scene's control moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from s11.experiment import Experiment
from s11.explain import explain
from s11.figures.learn_look import projected
from s11.figures.theme import Spec
from s11.figures.timeline import timeline_alt, timeline_figure
from s11.figures.timeline_info import timeline_info
from s11.learn_scene import Columns
from s11.metrics import Metrics, measure
from s11.results import Result
from s11.simulator import simulate
from s11.sweeps import longest_prompt_tokens
from s11.words import ms

WIDE_HEIGHT = 590


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Timeline:
    """A run, its figures, and its picture."""

    result: Result
    metrics: Metrics
    spec: Spec
    alt: str

    @property
    def columns(self) -> Columns:
        """Return the steps as a table."""
        steps = self.result.steps
        names = ("start_ms", "duration_ms", "prefill_tokens", "decode_tokens", "held_decodes")
        numbers = {"step": list(range(1, len(steps) + 1))}
        return numbers | {
            name: [round(value, 3) for value in getattr(steps, name).tolist()] for name in names
        }


def timeline(
    experiment: Experiment, *, end_ms: float, top_ms: float, about: tuple[str, ...] = ()
) -> Timeline:
    """Run an experiment and draw it from 0 to `end_ms`, steps of up to `top_ms` ms.

    about: further lines of the caption.

    Without the outline of the run with chunking off: a scene has one thing to look at.
    """
    result, whole = simulate(experiment), simulate(experiment.chunking_off())
    metrics, unchunked = (
        measure(each, itl_target_ms=experiment.itl_target_ms) for each in (result, whole)
    )
    explanation = explain(experiment, result, metrics, whole=unchunked)
    info = timeline_info(experiment, result, explanation, whole=whole)
    load = (
        f"{longest_prompt_tokens(experiment):,}-token prompt, "
        f"{experiment.workload.streaming_users} users, target {ms(experiment.itl_target_ms)}"
    )
    caption = [load, *about, f"{experiment.cost.formula()}, s11"]
    info = replace(info, caption=caption, right_end=end_ms, top_ms=top_ms, ghost=None)
    spec = timeline_figure(info, metrics=metrics)
    return Timeline(
        result=result,
        metrics=metrics,
        spec=projected(spec, height=WIDE_HEIGHT),
        alt=timeline_alt(info, metrics),
    )
