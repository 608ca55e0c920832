"""Exercise: a token budget, a prompt that is longer, and the decodes that eat into it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from s11.costs import LinearCost
from s11.exercises import Exercise, Line, Quantity, Slip, decimals, step_formula
from s11.experiment import Experiment
from s11.metrics import measure
from s11.plan import EngineLimits
from s11.quiz import SIMULATOR, PageLink
from s11.simulator import simulate
from s11.words import count, ms
from s11.workload import chapter_scenario

NEAR = 0.005  # less than what a step too many makes of the TTFT
WATCHED_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetNumbers:
    """What the exercise is set with: prompt, streaming users, token budget."""

    prompt_tokens: int
    users: int
    budget_tokens: int

    def experiment(self) -> Experiment:
        """Return the load at the chapter's costs, without a chunk cap."""
        return Experiment(
            workload=chapter_scenario(prompt_tokens=self.prompt_tokens, streaming_users=self.users),
            limits=EngineLimits(token_budget=self.budget_tokens, chunk_tokens=None),
            cost=LinearCost(),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BudgetSolution:
    """What the simulator says, with chunking on and off.

    slices: prompt tokens of each prefill step with chunking on.
    whole_tokens: prompt tokens that are computed with chunking off.
    fewer_ttft_ms: the TTFT with a quarter of the streams.
    """

    numbers: BudgetNumbers
    slices: NDArray[np.int64]  # (steps,)
    step_ms: float
    ttft_ms: float
    whole_tokens: int
    never: bool
    fewer_users: int
    fewer_steps: int
    fewer_ttft_ms: float

    @property
    def steps(self) -> int:
        """Steps until the first token, chunking on."""
        return len(self.slices)

    @property
    def left_tokens(self) -> int:
        """Prompt tokens in a full step."""
        return self.numbers.budget_tokens - self.numbers.users


def solve_budget(numbers: BudgetNumbers) -> BudgetSolution:
    """Return the solution, from runs with chunking on and off.

    Raises:
        ValueError: a budget below the number of streams.
    """
    experiment = numbers.experiment()
    ran, off = simulate(experiment), simulate(experiment.chunking_off())
    figures = measure(ran, itl_target_ms=experiment.itl_target_ms)
    fewer = replace(numbers, users=max(1, numbers.users // 4))
    few = simulate(fewer.experiment())
    carried = ran.steps.prefill_tokens > 0
    return BudgetSolution(
        numbers=numbers,
        slices=ran.steps.prefill_tokens[carried],
        step_ms=float(ran.steps.duration_ms.max()),
        ttft_ms=figures.ttft_ms or 0.0,
        whole_tokens=int(off.steps.prefill_tokens[:WATCHED_STEPS].sum()),
        never=bool(off.never_scheduled),
        fewer_users=fewer.users,
        fewer_steps=int((few.steps.prefill_tokens > 0).sum()),
        fewer_ttft_ms=measure(few, itl_target_ms=experiment.itl_target_ms).ttft_ms or 0.0,
    )


def budget_exercise(solution: BudgetSolution) -> Exercise:
    """Return the exercise with its numbers, and how they are worked out by hand."""
    asked = solution.numbers
    parameters = (
        ("prompt", str(asked.prompt_tokens)),
        ("users", str(asked.users)),
        ("budget", str(asked.budget_tokens)),
    )
    return Exercise(
        name="budget",
        title="A budget, a prompt that never runs, and the cure",
        task=(
            f"An engine computes at most {asked.budget_tokens:,} tokens in a step, and "
            f"{count(asked.users, 'stream')} take one each in every step. A prompt of "
            f"{count(asked.prompt_tokens, 'token')} arrives; a step takes "
            f"{step_formula(LinearCost())}. How far does the prompt get with chunking off? With "
            "chunking on, and no other cap, how much of it fits in a step, how many steps does it "
            "take, and when does its first token come?"
        ),
        look_for=(
            "with chunking off the timeline has no orange at all, and the page says what holds "
            "the prompt back. Switch chunking on with the slider at its right end: each bar is "
            "as full as the budget lets it. Then raise the number of users, and count again."
        ),
        start=PageLink(
            "Open these numbers in the simulator",
            SIMULATOR,
            (*parameters, ("chunk", str(asked.prompt_tokens)), ("chunking", "false")),
        ),
        quantities=_quantities(solution),
        worked=_worked(solution),
        moral=(
            "A budget bounds the step, and so the stall: "
            f"{ms(solution.step_ms)} here. Chunking lets a prompt of any length through "
            f"it, and the decodes decide how fast: with {solution.fewer_users} streams instead of "
            f"{asked.users} it would be {count(solution.fewer_steps, 'step')} and "
            f"{ms(solution.fewer_ttft_ms)}, not {solution.steps:,} and {ms(solution.ttft_ms)}."
        ),
    )


def _ttft_ms(numbers: BudgetNumbers, steps: int) -> float:
    """Return what so many steps take: the linear cost, by hand."""
    cost = LinearCost()
    each = cost.fixed_ms + cost.decode_ms_per_token * numbers.users
    return steps * each + cost.prefill_ms_per_token * numbers.prompt_tokens


def _quantities(solution: BudgetSolution) -> tuple[Quantity, ...]:
    asked, left, steps = solution.numbers, solution.left_tokens, solution.steps
    blind = math.ceil(asked.prompt_tokens / asked.budget_tokens)
    return (
        Quantity(
            name="off",
            label=f"Chunking off: prompt tokens computed in {WATCHED_STEPS} steps",
            unit="tokens",
            answer=solution.whole_tokens,
            slips=(
                Slip(
                    asked.prompt_tokens,
                    "no: it would need one step for all of it, and no step is that large.",
                ),
                Slip(left, "no: that would be cutting it, which is what chunking off forbids."),
                Slip(
                    WATCHED_STEPS * left,
                    "no: that would be cutting it, which is what chunking off forbids.",
                ),
            ),
        ),
        Quantity(
            name="slice",
            label="Chunking on: prompt tokens in a full step",
            unit="tokens",
            answer=left,
            slips=(
                Slip(
                    asked.budget_tokens,
                    "too many: each decode takes a token of the budget first.",
                ),
            ),
        ),
        Quantity(
            name="steps",
            label="Chunking on: steps until the first token",
            unit="steps",
            answer=steps,
            slips=(
                Slip(blind, "too few: the decodes leave less than the budget in each step."),
                Slip(asked.prompt_tokens // left, "one too few: the rest needs a step as well."),
            ),
        ),
        Quantity(
            name="ttft",
            label="Chunking on: TTFT",
            unit="ms",
            answer=solution.ttft_ms,
            tolerance=NEAR,
            slips=(
                Slip(
                    _ttft_ms(asked, blind),
                    f"too small: that is {count(blind, 'step')}, as if the decodes took none of "
                    "the budget.",
                ),
                Slip(
                    _ttft_ms(asked, 1),
                    "too small: fixed cost and decodes come in every step, not once.",
                ),
                Slip(
                    steps * solution.step_ms,
                    "too large: the last step holds only the rest of the prompt.",
                ),
            ),
        ),
    )


def _worked(solution: BudgetSolution) -> tuple[Line, ...]:
    asked, cost, steps = solution.numbers, LinearCost(), solution.steps
    left = solution.left_tokens
    each = cost.fixed_ms + cost.decode_ms_per_token * asked.users
    work = cost.prefill_ms_per_token * asked.prompt_tokens
    return (
        Line(
            "Chunking off: the prompt is one slice, and it stays longer than what any step has "
            "left. It never runs, and everyone behind it waits for ever.",
            f"{asked.prompt_tokens:,} > {asked.budget_tokens:,} − {asked.users:,} = {left:,} → "
            f"{solution.whole_tokens:,} tokens",
        ),
        Line(
            "Chunking on: the decodes are served first, and the prompt takes what is left.",
            f"{asked.budget_tokens:,} − {asked.users:,} = {left:,} tokens",
        ),
        Line(
            "It needs so many steps, rounded up.",
            f"{asked.prompt_tokens:,} / {left:,} = {asked.prompt_tokens / left:,.2f} → "
            f"{count(steps, 'step')}",
        ),
        Line(
            "The last of them holds the rest.",
            f"{asked.prompt_tokens:,} − {steps - 1:,} · {left:,} = "
            f"{count(int(solution.slices[-1]), 'token')}",
        ),
        Line(
            "Each step repeats its fixed cost and the decodes; the prompt's own work is done once.",
            f"{steps:,} · ({decimals(cost.fixed_ms)} + {cost.decode_ms_per_token:g} · "
            f"{asked.users:,}) + {cost.prefill_ms_per_token:g} · {asked.prompt_tokens:,} = "
            f"{decimals(steps * each)} + {decimals(work)} = {decimals(solution.ttft_ms)} ms",
        ),
    )
