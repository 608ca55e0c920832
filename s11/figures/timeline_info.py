"""What the timeline shows, as plain values: steps above, streams below, on one axis."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from s11.experiment import Experiment
from s11.figures.timeline_pinned import PinnedMarks
from s11.figures.timeline_words import caption, on_a_machine, pinned_caption, title
from s11.metrics import Metrics
from s11.policies import DISAGGREGATED
from s11.results import Result
from s11.verdict import Explanation

Floats = NDArray[np.float64]

MOST_STEPS = 1_000
SHOWN_USERS = 4
STRETCH = 1.5
HEADROOM = 1.18
SHOWN_PROMPTS = 4
ONE_TOKEN_STEP = "weights' read"  # and launches: one column more would break the legend on a phone


class Axis(StrEnum):
    """What runs along the timeline."""

    TIME = "by time"
    STEP = "by step"


@dataclass(frozen=True, slots=True, eq=False)
class StepMarks:
    """The steps to draw; where they are many, each stands for a few, by its longest."""

    left: Floats  # (marks,) ms, or step number
    width: Floats  # (marks,)
    prefill_ms: Floats  # (marks,)
    decode_ms: Floats  # (marks,)
    fixed_ms: Floats  # (marks,)
    prefill_tokens: NDArray[np.int64]  # (marks,)
    decode_tokens: NDArray[np.int64]  # (marks,)
    number: NDArray[np.int64]  # (marks,) of the step, from 1
    over_target: NDArray[np.bool_]  # (marks,)
    steps_per_mark: int

    @property
    def duration_ms(self) -> Floats:
        """The steps' durations."""
        return self.prefill_ms + self.decode_ms + self.fixed_ms


@dataclass(frozen=True, slots=True, eq=False)
class PromptRow:
    """One long prompt: its chunks, from its arrival to its first token."""

    request_id: str
    chunk_left: Floats  # (chunks,)
    chunk_width: Floats  # (chunks,)
    chunk_tokens: NDArray[np.int64]  # (chunks,)
    arrival: float
    first_token: float | None
    ttft_ms: float | None
    handed_over_from: float | None = None  # when its KV set out for the decode worker


@dataclass(frozen=True, slots=True, eq=False)
class Freezes:
    """The gaps in the streams that are over the target."""

    left: Floats  # (freezes,)
    width: Floats  # (freezes,)
    gap_ms: Floats  # (freezes,)


@dataclass(frozen=True, slots=True, eq=False)
class Ghost:
    """The steps that carry prefill with chunking off, as an outline."""

    left: float
    right: float
    height_ms: float


@dataclass(frozen=True, slots=True, eq=False)
class Pinned:
    """The state A that a run is held against."""

    experiment: Experiment
    result: Result
    metrics: Metrics


@dataclass(frozen=True, slots=True, eq=False)
class TimelineInfo:
    """Everything that the timeline draws."""

    title: str
    caption: list[str]
    axis: Axis
    steps: StepMarks
    itl_target_ms: float
    ghost: Ghost | None
    prompts: list[PromptRow]
    folded_prompts: int
    users: int
    token_marks: Floats  # (tokens of one stream,) the first stands for the token at t = 0
    freezes: Freezes
    right_end: float
    scale_end: float  # the right end before it was stretched for this run: the scenario's own
    top_ms: float
    chunking: bool
    never_scheduled: bool
    fixed_name: str = "fixed overhead"
    pinned: PinnedMarks | None = None

    @property
    def ends(self) -> float:
        """Where the last step of all ends, A's included."""
        steps = self.steps
        mine = float(steps.left[-1] + steps.width[-1]) if len(steps.left) else 0.0
        return max(mine, self.pinned.end if self.pinned else 0.0)

    @property
    def tokens_a_stream(self) -> int:
        """How many tokens a streaming user has got, the one at t = 0 included."""
        return len(self.token_marks)


def timeline_info(
    experiment: Experiment,
    result: Result,
    explanation: Explanation,
    *,
    whole: Result,
    axis: Axis = Axis.TIME,
    zoom_on_target: bool = False,
    pinned: Pinned | None = None,
) -> TimelineInfo:
    """Return what to draw of `result`; `whole` is the same experiment with chunking off.

    Where a state is pinned, it is outlined in place of the whole-prompt run.

    The axes depend on the scenario, not on the chunk size, so that a change of chunk is
    seen: the height holds the largest step that the scenario can have, the length the
    whole-prompt run with a quarter to spare, stretched by halves until this run fits.
    """
    steps = result.steps
    by_time = axis is Axis.TIME
    left = steps.start_ms if by_time else np.arange(len(steps), dtype=float)
    right = steps.end_ms if by_time else left + 1
    marks = _step_marks(result, left, right, experiment.itl_target_ms)
    decodes = steps.decode_tokens > 0
    largest_ms, shortest_run = _scale(experiment, whole, axis)
    marked = _pinned_marks(pinned, experiment, axis) if pinned else None
    if marked:
        shortest_run = _stretched_until(shortest_run, marked.end)
        largest_ms = max(largest_ms, HEADROOM * float(marked.duration_ms.max(initial=0.0)))
    return TimelineInfo(
        title=title(experiment, explanation),
        caption=[*caption(experiment, result), *(marked.caption if marked else ())],
        axis=axis,
        steps=marks,
        itl_target_ms=experiment.itl_target_ms,
        ghost=None if marked or _same_steps(result, whole) else _ghost(whole, axis),
        prompts=_prompt_rows(result, left, right, by_time),
        folded_prompts=max(0, len(result.requests) - SHOWN_PROMPTS),
        users=experiment.workload.streaming_users,
        token_marks=np.concatenate(([0.0], right[decodes])),
        freezes=_freezes(experiment, result, right[decodes]),
        right_end=_stretched_until(shortest_run, float(right[-1]) if len(right) else 0.0),
        scale_end=shortest_run,
        top_ms=2 * experiment.itl_target_ms if zoom_on_target else largest_ms,
        chunking=experiment.chunking,
        never_scheduled=bool(result.never_scheduled),
        fixed_name=ONE_TOKEN_STEP if on_a_machine(experiment) else "fixed overhead",
        pinned=marked,
    )


def _pinned_marks(pinned: Pinned, experiment: Experiment, axis: Axis) -> PinnedMarks:
    """Return what is drawn of A beside a run of `experiment`."""
    steps, by_time = pinned.result.steps, axis is Axis.TIME
    left = steps.start_ms if by_time else np.arange(len(steps), dtype=float)
    right = steps.end_ms if by_time else left + 1
    marks = _step_marks(pinned.result, left, right, experiment.itl_target_ms)
    rows = _prompt_rows(pinned.result, left, right, by_time)
    decodes = right[steps.decode_tokens > 0]
    streams = pinned.experiment.workload.streaming_users > 0
    return PinnedMarks(
        left=marks.left,
        right=marks.left + marks.width,
        duration_ms=marks.duration_ms,
        chunk_left=rows[0].chunk_left if rows else np.zeros(0),
        chunk_width=rows[0].chunk_width if rows else np.zeros(0),
        first_token=rows[0].first_token if rows else None,
        ttft_ms=rows[0].ttft_ms if rows else None,
        token_marks=np.concatenate(([0.0], decodes)) if streams else np.zeros(0),
        caption=pinned_caption(pinned.experiment, pinned.result, pinned.metrics, beside=experiment),
    )


def _freezes(experiment: Experiment, result: Result, places: Floats) -> Freezes:
    """Return the streams' gaps over the target; `places` are where their decode steps end."""
    steps, decodes = result.steps, result.steps.decode_tokens > 0
    before_ms = np.concatenate(([0.0], result.decode_ends_ms()[:-1]))[: len(places)]
    gaps_ms = steps.duration_ms[decodes] + (steps.start_ms[decodes] - before_ms)
    edges = np.concatenate(([0.0], places))
    over = gaps_ms > experiment.itl_target_ms
    frozen = np.flatnonzero(over)[: MOST_STEPS if experiment.workload.streaming_users else 0]
    return Freezes(left=edges[frozen], width=np.diff(edges)[frozen], gap_ms=gaps_ms[frozen])


def _step_marks(result: Result, left: Floats, right: Floats, target_ms: float) -> StepMarks:
    steps = result.steps
    per_mark = max(1, -(-len(steps) // MOST_STEPS))
    if per_mark == 1:
        chosen = np.arange(len(steps))
        mark_left, mark_right = left, right
    else:
        starts = np.arange(0, len(steps), per_mark)
        padded = np.full(len(starts) * per_mark, -1.0)
        padded[: len(steps)] = steps.duration_ms
        chosen = starts + padded.reshape(-1, per_mark).argmax(axis=1)
        mark_left = left[starts]
        mark_right = right[np.minimum(starts + per_mark, len(steps)) - 1]
    return StepMarks(
        left=mark_left,
        width=mark_right - mark_left,
        prefill_ms=steps.prefill_ms[chosen],
        decode_ms=steps.decode_ms[chosen],
        fixed_ms=steps.fixed_ms[chosen],
        prefill_tokens=steps.prefill_tokens[chosen],
        decode_tokens=steps.decode_tokens[chosen],
        number=chosen + 1,
        over_target=steps.duration_ms[chosen] > target_ms,
        steps_per_mark=per_mark,
    )


def _prompt_rows(result: Result, left: Floats, right: Floats, by_time: bool) -> list[PromptRow]:
    ends = result.steps.end_ms

    def place(at_ms: float) -> float:
        return at_ms if by_time else float(np.searchsorted(ends, at_ms, side="right"))

    worker = result.prefilling
    if worker is not result:  # its steps are not those of this axis
        left, right = worker.steps.start_ms, worker.steps.end_ms
        if not by_time:
            edges, numbers = np.concatenate(([0.0], ends)), np.arange(len(ends) + 1.0)
            left, right = np.interp(left, edges, numbers), np.interp(right, edges, numbers)
    rows = []
    for row in range(min(len(result.requests), SHOWN_PROMPTS)):
        mine = worker.slices.request == row
        chosen = worker.slices.step[mine]
        first_ms = float(result.requests.first_token_ms[row])
        arrival_ms = float(result.requests.arrival_ms[row])
        done = not np.isnan(first_ms)
        rows.append(
            PromptRow(
                request_id=result.requests.request_id[row],
                chunk_left=left[chosen],
                chunk_width=(right - left)[chosen],
                chunk_tokens=worker.slices.tokens[mine],
                arrival=place(arrival_ms),
                first_token=place(first_ms) if done else None,
                ttft_ms=first_ms - arrival_ms if done else None,
                handed_over_from=None if worker is result or not done else float(right[chosen[-1]]),
            )
        )
    return rows


def _ghost(whole: Result, axis: Axis) -> Ghost | None:
    carrying = np.flatnonzero(whole.steps.prefill_tokens)
    if not len(carrying):
        return None
    first, last = int(carrying[0]), int(carrying[-1])
    height_ms = float(whole.steps.duration_ms[carrying].max())
    if axis is Axis.STEP:
        return Ghost(left=float(first), right=float(last + 1), height_ms=height_ms)
    left, right = whole.steps.start_ms[first], whole.steps.end_ms[last]
    return Ghost(left=float(left), right=float(right), height_ms=height_ms)


def _same_steps(result: Result, whole: Result) -> bool:
    return np.array_equal(result.steps.end_ms, whole.steps.end_ms)


def _scale(experiment: Experiment, whole: Result, axis: Axis) -> tuple[float, float]:
    """Return the height in ms and the shortest length of the axes, chunk size aside."""
    workload = experiment.workload
    users = workload.streaming_users
    prompts = sum(request.prompt_tokens for request in workload.requests)
    room = experiment.limits.tokens_per_step() - users
    beside = 0 if experiment.policy == DISAGGREGATED else int(min(prompts, room))
    largest_ms = experiment.first_step_ms(beside)
    height_ms = HEADROOM * max(largest_ms, experiment.itl_target_ms)
    other_steps = (workload.lead_in_steps + workload.tail_steps) if users else 0
    if axis is Axis.STEP:
        return height_ms, 1.25 * max(16, len(whole.steps))
    whole_ms = experiment.first_step_ms(prompts) + other_steps * experiment.first_step_ms(0)
    return height_ms, 1.25 * whole_ms


def _stretched_until(length: float, needed: float) -> float:
    while length < needed:
        length *= STRETCH
    return length
