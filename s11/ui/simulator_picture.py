"""All that the simulator page shows of one experiment: picture, figures, words."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from s11.experiment import Experiment
from s11.explain import explain
from s11.figures.theme import Spec
from s11.figures.timeline import timeline_alt, timeline_figure
from s11.figures.timeline_info import Pinned, timeline_info
from s11.kv_pool import within_memory
from s11.ui.headlines import Against, Headline, headlines
from s11.ui.runs import Run, run
from s11.ui.simulator_state import View
from s11.ui.simulator_words import Words, words


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What is shown of an experiment, and the run that it was made from."""

    experiment: Experiment
    this: Run
    spec: Spec
    alt: str
    headlines: tuple[Headline, ...]
    words: Words

    @property
    def scenario(self) -> str:
        """What the pictures of all chunk sizes have in common, as a short name."""
        return str(self.spec["layout"]["meta"]["scenario"])


def picture(experiment: Experiment, view: View, pinned: Experiment | None) -> Picture:
    """Return what the page shows of an experiment, held against a pinned one if there is one.

    Raises:
        ValueError: a model that does not fit, in one sentence.
    """
    pooled, whole_experiment = within_memory(experiment), experiment.chunking_off()
    this, whole = run(experiment), run(whole_experiment)
    its = run(pinned) if pinned else None
    explanation = explain(pooled, this.result, this.metrics, whole=None if its else whole.metrics)
    info = timeline_info(
        pooled,
        this.result,
        explanation,
        whole=whole.result,
        axis=view.axis,
        zoom_on_target=view.zoom_on_target,
        pinned=Pinned(pinned, its.result, its.metrics) if pinned and its else None,
    )
    spec = timeline_figure(info, metrics=this.metrics)
    spec["layout"]["meta"] |= {
        "scenario": scenario_name(experiment, view, pinned),
        "chunk_tokens": experiment.limits.chunk_tokens if experiment.chunking else None,
    }
    against = Against(whole, "chunking off") if experiment.chunking else None
    if its:
        against = Against(its, "A")
    return Picture(
        experiment=experiment,
        this=this,
        spec=spec,
        alt=timeline_alt(info, this.metrics),
        headlines=headlines(this, against),
        words=words(experiment, explanation, its),
    )


def scenario_name(experiment: Experiment, view: View, pinned: Experiment | None) -> str:
    """Return a short name of all that is shown, the chunk size aside."""
    alike = experiment.with_chunk_tokens(1) if experiment.chunking else experiment
    described = repr((alike, view.axis, view.zoom_on_target, pinned))
    return blake2b(described.encode(), digest_size=8).hexdigest()
