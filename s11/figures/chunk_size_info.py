"""What the chunk size page's pictures are drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from s11.catalog import GPUS, Deployment
from s11.costs.constants import constants_of
from s11.costs.host import HOST_OF_POLICY, STANDS_IN
from s11.experiment import Experiment
from s11.largest_chunk import GRAIN_TOKENS
from s11.piggyback import turning_tokens
from s11.presets import TITLES
from s11.sweeps import SweepPoint, knee, longest_prompt_tokens
from s11.tuning import (
    ChunkStep,
    Tried,
    balanced_knee,
    chunk_step,
)
from s11.words import count, ms

LONGEST_CAPTION = 60
MARKS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCurve:
    """One machine's sweep over chunk sizes, against the ITL target.

    machine, simulated, calibration, load: for captions, each at most 60 characters.
    tried: the sizes that were run, in order; planned: how many there were to run.
    largest: the largest chunk within the target; None where there is none.
    block_size: of the engine's KV cache, in tokens.
    knee: the size with the least stall x TTFT, be it the last; `balanced` is None then.
    step: what a step at that size spends on what.
    turning_tokens: rows from which on arithmetic bounds the products; None: nowhere.
    """

    machine: str
    simulated: str
    calibration: str
    load: str
    policy: str
    mixed: bool
    prompt_tokens: int
    streaming_users: int
    target_ms: float
    tried: tuple[Tried, ...]
    planned: int
    largest: int | None
    block_size: int
    knee: SweepPoint | None
    step: ChunkStep | None
    turning_tokens: int | None

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """Return the sizes that ran."""
        return tuple(tried.point for tried in self.tried if tried.point)

    @property
    def refused(self) -> tuple[Tried, ...]:
        """Return the sizes that do not run, each with its reason."""
        return tuple(tried for tried in self.tried if tried.point is None)

    @property
    def balanced(self) -> SweepPoint | None:
        """Return the knee where it is one, see `balanced_knee`."""
        return balanced_knee(self.points, waiting=self.stands_still)

    @property
    def told(self) -> SweepPoint | None:
        """Return the size that the figures are of: the knee's, or that of the shortest stall.

        The latter where the decodes wait for the whole prompt: there stall and TTFT are one.
        """
        if not self.stands_still:
            return self.knee
        return min(self.points, key=lambda p: p.longest_stall_ms or math.inf, default=None)

    @property
    def partial(self) -> bool:
        """Return whether the sweep was stopped before its end."""
        return len(self.tried) < self.planned

    @property
    def last_tokens(self) -> int:
        """Return the chunk size that holds the whole prompt."""
        counted = self.streaming_users if self.policy == "sglang" and self.mixed else 0
        return self.prompt_tokens + counted

    @property
    def any_chunk(self) -> bool:
        """Return whether even the whole prompt in one step meets the target."""
        return self.largest is not None and self.largest >= self.prompt_tokens

    @property
    def stands_still(self) -> bool:
        """Return whether the decodes wait for the whole prompt, whatever the chunk size."""
        return self.policy == "sglang" and not self.mixed


def chunk_curve(
    experiment: Experiment,
    machine: Deployment,
    tried: Sequence[Tried],
    *,
    planned: int,
    largest: int | None,
) -> ChunkCurve:
    """Return what a sweep says, ready to be drawn and told."""
    ran = [one.point for one in tried if one.point]
    best = knee(ran)
    workload, limits = experiment.workload, experiment.limits
    users = workload.streaming_users
    return ChunkCurve(
        machine=short_caption(experiment.cost.formula()),
        simulated=simulated_words(experiment.policy),
        calibration=calibration_words(machine),
        load=short_caption(
            f"{longest_prompt_tokens(experiment):,}-token prompt beside {count(users, 'user')} "
            f"of {workload.user_context_tokens:,} tokens"
        ),
        policy=experiment.policy,
        mixed=limits.mixed,
        prompt_tokens=longest_prompt_tokens(experiment),
        streaming_users=users,
        target_ms=experiment.itl_target_ms,
        tried=tuple(tried),
        planned=planned,
        largest=largest,
        block_size=limits.block_size,
        knee=best,
        step=chunk_step(experiment, best.chunk_tokens) if best else None,
        turning_tokens=turning_tokens(machine),
    )


def calibration_words(machine: Deployment) -> str:
    """Return on what measurements the step times rest, in a caption's few words."""
    constants = constants_of(machine.gpu, machine.precision)
    if constants.calibrated:
        return "calibrated on measured kernels"
    if constants.inherits is None:
        return f"not calibrated in {machine.precision}"
    return f"not calibrated: as {GPUS[constants.inherits].title}"


def simulated_words(policy: str) -> str:
    """Return who made the numbers, under which engine, in a caption's few words."""
    stand_in = host_stand_in(policy)
    host = f", host as {stand_in}'s" if stand_in else ""
    return f"simulated by s11 · {TITLES[policy]}{host}"


def host_stand_in(policy: str) -> str | None:
    """Return the engine whose time on the host stands in for one that was not measured."""
    titles = {host: TITLES[name] for name, host in HOST_OF_POLICY.items()}
    return titles.get(STANDS_IN.get(HOST_OF_POLICY.get(policy, ""), ""))


def grain_words(curve: ChunkCurve) -> str:
    """Return how finely the largest chunk was looked for."""
    if curve.largest and curve.largest < GRAIN_TOKENS:
        return "to a power of two"
    if curve.policy == "tensorrt_llm":
        return f"in whole blocks of {curve.block_size} tokens, as the engine cuts them"
    if curve.streaming_users % GRAIN_TOKENS == 0 or curve.stands_still:
        return f"to a multiple of {GRAIN_TOKENS}"
    decodes = f"the {count(curve.streaming_users, 'decode')}"
    if curve.policy == "sglang":
        return f"to a multiple of {GRAIN_TOKENS}, with {decodes} that it counts or without"
    return f"to a multiple of {GRAIN_TOKENS}, alone or with {decodes}"


def short_caption(line: str) -> str:
    """Return a caption line that fits a phone."""
    return line if len(line) <= LONGEST_CAPTION else f"{line[: LONGEST_CAPTION - 1]}…"


def tokens_word(tokens: int) -> str:
    """Return a token count as an axis shows it: 64, 1k, 96k, 1.5k."""
    if tokens < 1024:
        return str(tokens)
    return f"{tokens / 1024:.1f}".removesuffix(".0") + "k"


def octaves(first: int, last: int, *, most: int) -> tuple[list[int], list[str]]:
    """Return an axis' marks at powers of two within a range, `most` at most, and their words."""
    powers = [2**n for n in range(math.ceil(math.log2(first)), math.floor(math.log2(last)) + 1)]
    every = max(1, -(-len(powers) // most))
    shown = powers[::every] or [first]
    return shown, [tokens_word(mark) for mark in shown]


def log_axis(values: Sequence[float], *, most: int = 7) -> dict[str, Any]:
    """Return a logarithmic axis' range and marks at 1, 2, 5 steps; above `most`, at 1 alone.

    The ends are such steps too, so that they stay while a control moves a little.
    """
    known = [value for value in values if value > 0] or [1.0]
    lowest, highest = min(known) / 1.25, max(known) * 1.25
    steps = [
        mark * 10.0**power
        for power in range(math.floor(math.log10(lowest)) - 1, math.ceil(math.log10(highest)) + 1)
        for mark in MARKS
    ]
    low = max(step for step in steps if step <= lowest)
    high = min(step for step in steps if step >= highest)
    inside = [step for step in steps if low <= step <= high]
    if len(inside) > most:
        inside = [step for step in inside if f"{step:e}"[0] == "1"] or inside[::2]
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": inside,
        "ticktext": [f"{step:,g}" for step in inside],
    }


def headline(curve: ChunkCurve) -> str:
    """Return the finding, in 45 characters at most."""
    target = f"{curve.target_ms:g} ms"
    if not curve.points:
        return "Nothing ran yet" if curve.partial else "No chunk size runs here"
    if curve.largest is None:
        return f"No chunk meets {target} here"
    if curve.any_chunk:
        return f"Any chunk meets {target} here"
    return f"Largest chunk that meets {target}: {curve.largest:,}"


def curve_alt(curve: ChunkCurve) -> str:
    """Return the sweep's numbers for those who cannot see them."""
    told = [
        f"{count(point.chunk_tokens, 'token')}: stall {ms(point.longest_stall_ms)}, "
        f"P99 ITL {ms(point.itl_p99_ms)}, TTFT {ms(point.ttft_ms)}, "
        f"{point.prefill_tokens_per_s or 0:,.0f} prefill tokens/s"
        for point in curve.points
    ]
    knee_at = f" Knee at {count(curve.balanced.chunk_tokens, 'token')}." if curve.balanced else ""
    where = f"{curve.machine}, {curve.simulated}, {curve.load}"
    return f"Chunk-size sweep, {where}. {headline(curve)}.{knee_at} {'; '.join(told)}."


def curve_columns(curve: ChunkCurve) -> dict[str, list[Any]]:
    """Return the sweep as a table, a row for each chunk size."""
    columns: dict[str, list[Any]] = {
        "chunk_tokens": [tried.chunk_tokens for tried in curve.tried],
    }
    names = ("longest_stall_ms", "itl_p99_ms", "ttft_ms", "prefill_tokens_per_s")
    for name in (*names, "steps_over_target", "step_count"):
        columns[name] = [
            None if tried.point is None else getattr(tried.point, name) for tried in curve.tried
        ]
    columns["why_not"] = [tried.refused or None for tried in curve.tried]
    return columns
