"""Exercise: the largest chunk that keeps an ITL target, and what it costs the prompt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from s11.costs import LinearCost
from s11.exercises import Exercise, Line, Quantity, Slip, decimals, step_formula
from s11.experiment import Experiment
from s11.largest_chunk import largest_chunk_within_target
from s11.metrics import Metrics, measure
from s11.quiz import SIMULATOR, PageLink
from s11.simulator import simulate
from s11.sweeps import SweepPoint, sweep_point
from s11.words import count, ms, times
from s11.workload import chapter_scenario

NEAR = 0.005
START_CHUNK, SMALLEST = 512, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetNumbers:
    """What the exercise is set with: prompt, streaming users, ITL target."""

    prompt_tokens: int
    users: int
    target_ms: float

    def experiment(self) -> Experiment:
        """Return the load at the chapter's costs; its chunk size is yet to be set."""
        return Experiment(
            workload=chapter_scenario(prompt_tokens=self.prompt_tokens, streaming_users=self.users),
            cost=LinearCost(),
            itl_target_ms=self.target_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSolution:
    """What the simulator says: the largest chunk within the target, and what it changes."""

    numbers: TargetNumbers
    chunk_tokens: int
    steps: int
    stall_ms: float
    ttft_ms: float
    whole_stall_ms: float
    whole_ttft_ms: float


def solve_target(numbers: TargetNumbers) -> TargetSolution:
    """Return the solution, from runs.

    Raises:
        ValueError: numbers with which no chunk keeps the target.
    """
    experiment = numbers.experiment()
    chunk_tokens = largest_chunk_within_target(experiment)
    if chunk_tokens is None:
        raise ValueError(f"target_ms: no chunk size keeps {ms(numbers.target_ms)}")
    chunked, whole = experiment.with_chunk_tokens(chunk_tokens), experiment.chunking_off()
    ran = simulate(chunked)
    best, off = (_figures(each) for each in (chunked, whole))
    return TargetSolution(
        numbers=numbers,
        chunk_tokens=chunk_tokens,
        steps=int((ran.steps.prefill_tokens > 0).sum()),
        stall_ms=best.longest_stall_ms or 0.0,
        ttft_ms=best.ttft_ms or 0.0,
        whole_stall_ms=off.longest_stall_ms or 0.0,
        whole_ttft_ms=off.ttft_ms or 0.0,
    )


def sweep_sizes(solution: TargetSolution) -> tuple[SweepPoint, ...]:
    """Return what chunk sizes from 64 tokens to the whole prompt give, the answer among them."""
    experiment, last = solution.numbers.experiment(), solution.numbers.prompt_tokens
    sizes, size = {solution.chunk_tokens, last}, SMALLEST
    while size < last:
        sizes |= {n for n in (size, size * 3 // 2) if n < last}
        size *= 2
    return tuple([sweep_point(experiment.with_chunk_tokens(n), n) for n in sorted(sizes)])


def target_exercise(solution: TargetSolution) -> Exercise:
    """Return the exercise with its numbers, and how they are worked out by hand."""
    asked = solution.numbers
    return Exercise(
        name="target",
        title="The largest chunk that keeps the target",
        task=(
            f"A prompt of {count(asked.prompt_tokens, 'token')} arrives beside "
            f"{count(asked.users, 'stream')}. A step takes {step_formula(LinearCost())}. "
            f"No stream may wait longer than {ms(asked.target_ms)} between two tokens. How large "
            "may a chunk be, what is then the longest stall, and when does the prompt have its "
            "first token? Work it out by hand, then check."
        ),
        look_for=(
            "drag the chunk size, and watch the bars against the dashed target line: the height "
            "of a full chunk's bar is the stall, the number of bars makes the TTFT. The button "
            "under the slider knows the largest chunk; try without it first."
        ),
        start=PageLink(
            "Open these numbers in the simulator",
            SIMULATOR,
            (
                ("prompt", str(asked.prompt_tokens)),
                ("users", str(asked.users)),
                ("target", f"{asked.target_ms:g}"),
                ("chunk", str(START_CHUNK)),
            ),
        ),
        quantities=_quantities(solution),
        worked=_worked(solution),
        moral=(
            f"Chunked so, the longest stall is {ms(solution.stall_ms)} instead of "
            f"{ms(solution.whole_stall_ms)}, {times(solution.whole_stall_ms / solution.stall_ms)} "
            f"less; the first token comes {ms(solution.ttft_ms - solution.whole_ttft_ms)} later. "
            "The target sets the chunk, and the prompt's length only the number of steps."
        ),
    )


def _figures(experiment: Experiment) -> Metrics:
    return measure(simulate(experiment), itl_target_ms=experiment.itl_target_ms)


def _quantities(solution: TargetSolution) -> tuple[Quantity, ...]:
    asked, cost = solution.numbers, LinearCost()
    fixed, per_token = cost.fixed_ms, cost.prefill_ms_per_token
    decodes = cost.decode_ms_per_token * asked.users

    def fitting(room_ms: float) -> int:
        return math.floor(room_ms / per_token)

    work = per_token * asked.prompt_tokens
    full = solution.steps * solution.stall_ms
    return (
        Quantity(
            name="chunk",
            label="Largest chunk",
            unit="tokens",
            answer=solution.chunk_tokens,
            tolerance=NEAR,
            never_above="a little too large: with it a full step is over the target.",
            slips=(
                Slip(
                    fitting(asked.target_ms - fixed),
                    "too large: the decodes ride in the same step and take "
                    f"{decimals(decodes)} ms of it.",
                ),
                Slip(
                    fitting(asked.target_ms - decodes),
                    f"too large: each step has its fixed {decimals(fixed)} ms, too.",
                ),
                Slip(
                    fitting(asked.target_ms),
                    "too large: the fixed cost and the decodes take their part of the step first.",
                ),
            ),
        ),
        Quantity(
            name="stall",
            label="Longest stall with it",
            unit="ms",
            answer=solution.stall_ms,
            tolerance=NEAR,
            slips=(
                Slip(
                    solution.whole_stall_ms,
                    "too large: that is the step of the whole prompt, with chunking off.",
                ),
                Slip(
                    solution.stall_ms - decodes,
                    "too small: the streams' own decodes belong to the step.",
                ),
            ),
        ),
        Quantity(
            name="ttft",
            label="TTFT of the prompt with it",
            unit="ms",
            answer=solution.ttft_ms,
            tolerance=NEAR,
            slips=(
                Slip(
                    solution.whole_ttft_ms,
                    f"too small: fixed cost and decodes come in each of {solution.steps:,} steps, "
                    "not once.",
                ),
                Slip(
                    solution.steps * fixed + work,
                    "too small: the decodes ride in each of those steps.",
                ),
                Slip(full, "too large: the last chunk is only what is left of the prompt."),
            ),
        ),
    )


def _worked(solution: TargetSolution) -> tuple[Line, ...]:
    asked, cost = solution.numbers, LinearCost()
    fixed, per_token = cost.fixed_ms, cost.prefill_ms_per_token
    decodes = cost.decode_ms_per_token * asked.users
    each, work = fixed + decodes, per_token * asked.prompt_tokens
    room = asked.target_ms - each
    n, chunk = solution.steps, solution.chunk_tokens
    return (
        Line(
            "What every step takes before the first prompt token: its fixed cost and "
            f"{count(asked.users, 'decode')}.",
            f"{decimals(fixed)} + {cost.decode_ms_per_token:g} · {asked.users} = "
            f"{decimals(each)} ms",
        ),
        Line(
            "What the target leaves for prompt tokens.",
            f"{decimals(asked.target_ms)} − {decimals(each)} = {decimals(room)} ms",
        ),
        Line(
            "So many tokens fit, rounded down: the largest chunk.",
            f"{decimals(room)} / {per_token:g} = {room / per_token:,.1f} → {chunk:,} tokens",
        ),
        Line(
            "The step of a full chunk is the longest stall.",
            f"{decimals(each)} + {per_token:g} · {chunk:,} = {decimals(solution.stall_ms)} ms",
        ),
        Line(
            "The prompt takes so many steps, rounded up.",
            f"{asked.prompt_tokens:,} / {chunk:,} = {asked.prompt_tokens / chunk:,.2f} → "
            f"{count(n, 'step')}",
        ),
        Line(
            "Its first token comes with the last of them: what every step takes, so many times, "
            "and the prompt's own work once.",
            f"{n:,} · {decimals(each)} + {per_token:g} · {asked.prompt_tokens:,} = "
            f"{decimals(n * each)} + {decimals(work)} = {decimals(solution.ttft_ms)} ms",
        ),
    )
