"""Scene 7: the chunk size follows from what the streams were promised."""

from __future__ import annotations

from functools import lru_cache

from s11.experiment import Experiment
from s11.figures.chunk_size_info import short_caption, simulated_words
from s11.figures.learn_choice import ChoiceInfo, choice_alt, choice_figure
from s11.learn_ride import MACHINE
from s11.learn_scene import Control, Link, Scene, Shown
from s11.sweeps import SweepPoint
from s11.tuning import balanced_knee, largest_that_fits, try_chunk, tuned_experiment, tuned_sizes
from s11.words import count, ms

PROMPT_TOKENS, STREAMING_USERS, CONTEXT_TOKENS = 8192, 24, 1024
TARGETS_MS = (10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200)
MAX_STEPS = 20_000


def tuned(target_ms: int) -> Experiment:
    """Return the chapter's scenario on the scene's machine, its chunk size yet to be set."""
    return tuned_experiment(
        MACHINE,
        policy="vllm_v1",
        prompt_tokens=PROMPT_TOKENS,
        streaming_users=STREAMING_USERS,
        user_context_tokens=CONTEXT_TOKENS,
        itl_target_ms=float(target_ms),
    )


@lru_cache(maxsize=1)
def points() -> tuple[SweepPoint, ...]:
    """Return what each chunk size gives; the target is no matter."""
    asked = tuned(TARGETS_MS[0])
    tried = [try_chunk(asked, size, max_steps=MAX_STEPS) for size in tuned_sizes(asked)]
    return tuple(each.point for each in tried if each.point)


@lru_cache(maxsize=len(TARGETS_MS))
def choice_info(target_ms: int) -> ChoiceInfo:
    """Return the curve, its knee, and the largest chunk within the target."""
    asked = tuned(target_ms)
    largest = largest_that_fits(asked, max_steps=MAX_STEPS)
    return ChoiceInfo(
        points=points(),
        knee=balanced_knee(points(), waiting=False),
        largest=(largest and try_chunk(asked, largest, max_steps=MAX_STEPS).point) or None,
        target_ms=float(target_ms),
        targets_ms=(float(TARGETS_MS[0]), float(TARGETS_MS[-1])),
        caption=(
            short_caption(asked.cost.formula()),
            f"{PROMPT_TOKENS:,}-token prompt, {STREAMING_USERS} users",
            simulated_words(asked.policy),
        ),
    )


def choose(target_ms: int) -> Shown:
    """Return the scene: the target picks the size, and the knee says where it gets dear."""
    info = choice_info(target_ms)
    first, last = info.points[0], info.points[-1]
    sentences = [
        f"From {count(first.chunk_tokens, 'token')} to {last.chunk_tokens:,}, the stall goes from "
        f"{ms(first.longest_stall_ms)} to {ms(last.longest_stall_ms)} and the first token from "
        f"{ms(first.ttft_ms)} to {ms(last.ttft_ms)}: what one gains the other loses.",
        _within(info),
    ]
    if info.knee:
        sentences.append(
            f"At the knee, {count(info.knee.chunk_tokens, 'token')}, they are in balance: from "
            "there on a larger chunk costs a larger share of smoothness than it saves of the wait."
        )
    return Shown(
        spec=choice_figure(info),
        alt=choice_alt(info),
        sentences=tuple(sentences),
        columns={
            name: [getattr(point, name) for point in info.points]
            for name in ("chunk_tokens", "longest_stall_ms", "ttft_ms", "prefill_tokens_per_s")
        },
        link=Link(
            label="This target in Chunk size, with the engine's flags",
            page="chunk_size",
            parameters={"size_target": str(target_ms)},
        ),
    )


def _within(info: ChoiceInfo) -> str:
    if info.largest is None:
        return (
            f"No chunk keeps every gap within {ms(info.target_ms)}: "
            f"{count(info.points[0].chunk_tokens, 'token')} already make it "
            f"{ms(info.points[0].longest_stall_ms)}."
        )
    return (
        f"A target of {ms(info.target_ms)} allows chunks of up to "
        f"{count(info.largest.chunk_tokens, 'token')}, with a stall of "
        f"{ms(info.largest.longest_stall_ms)} and the first token after {ms(info.largest.ttft_ms)}."
    )


CHOOSE = Scene(
    slug="choose",
    headline="The target picks the chunk size",
    control=Control(
        key="promise",
        label="ITL target: the longest gap that a stream may see (ms)",
        options=TARGETS_MS,
        default=50,
        about="The largest chunk that keeps every gap within it is marked with a star.",
    ),
    show=choose,
)
