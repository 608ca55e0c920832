"""Every stop of the chunk slider, drawn before anybody drags it there.

A scenario runs in about a millisecond, so the pictures, figures and words of all stops are made
after the page is painted and sent together; while the slider is dragged the browser shows them
without asking the server. A stop's picture is the very text that the server sends when the
slider comes to rest there.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import lru_cache

from s11.experiment import Experiment
from s11.figures.drawn import as_json
from s11.ui.runs import run
from s11.ui.simulator_picture import Picture, picture, scenario_name
from s11.ui.simulator_state import View

MOST_STEPS_IN_ALL = 12_000
"""Of all stops that are sent; about 0.2 s of the server's time where a model says each step's."""

FAST = 5  # of gzip's levels: near its best size in a third of the time


@dataclass(frozen=True, slots=True, eq=False)
class Stops:
    """What is sent: `packed` holds the stops, `left_out` the chunk sizes that cost too much."""

    packed: bytes
    left_out: tuple[int, ...]


def slider_stops(
    experiment: Experiment, view: View, pinned: Experiment | None, sizes: tuple[int, ...]
) -> Stops:
    """Return the slider's stops for an experiment, whatever its own chunk size.

    The largest chunks come first; where their steps are too many in all, the smallest are left
    out, and their picture comes when the slider is let go.

    Raises:
        ValueError: a model that does not fit, in one sentence.
    """
    return _stops(experiment.with_chunk_tokens(1), view, pinned, sizes)


@lru_cache(maxsize=32)
def _stops(
    experiment: Experiment, view: View, pinned: Experiment | None, sizes: tuple[int, ...]
) -> Stops:
    made, steps = [], 0
    remaining = sorted(sizes)
    while remaining:
        there = experiment.with_chunk_tokens(remaining[-1])
        if steps + _expected_steps(there) > MOST_STEPS_IN_ALL:
            break
        steps += len(run(there).result.steps)
        made.append(_stop(remaining.pop(), picture(there, view, pinned)))
    told = {
        "scenario": scenario_name(experiment, view, pinned),
        "slider": "chunk",
        "stops": made,
    }
    packed = gzip.compress(json.dumps(told, separators=(",", ":")).encode(), FAST, mtime=0)
    return Stops(packed, tuple(remaining))


def _expected_steps(experiment: Experiment) -> int:
    """Return about how many steps a run takes."""
    limits = experiment.limits
    prompts = [request.prompt_tokens for request in experiment.workload.requests]
    room = max(1, limits.tokens_per_step() - experiment.workload.streaming_users)
    longest = max(prompts, default=0) / max(1, min(limits.tokens_per_slice(), room))
    return int(max(longest, sum(prompts) / room)) * limits.prefill_interval


def _stop(chunk_tokens: int, shown: Picture) -> dict[str, object]:
    return {
        "chunk": chunk_tokens,
        "spec": as_json(shown.spec),
        "alt": shown.alt,
        "headlines": [headline.to_dict() for headline in shown.headlines],
        "words": shown.words.to_dict(),
    }
