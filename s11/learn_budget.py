"""Scene 4: decodes first, slices of the prompt into what is left of the budget."""

from __future__ import annotations

from s11.experiment import Experiment
from s11.figures.learn_budget import BudgetInfo, budget_alt, budget_figure
from s11.learn_scene import Control, Link, Scene, Shown
from s11.metrics import measure
from s11.plan import EngineLimits
from s11.simulator import simulate
from s11.words import count, ms
from s11.workload import chapter_scenario

BUDGET_TOKENS, PROMPT_TOKENS = 512, 8192
STREAMS = (8, 24, 64, 128, 192, 256, 320)


def budgeted(streaming_users: int) -> Experiment:
    """Return the chapter's scenario under a token budget, without a cap on a prompt's slice."""
    return Experiment(
        workload=chapter_scenario(prompt_tokens=PROMPT_TOKENS, streaming_users=streaming_users),
        limits=EngineLimits(token_budget=BUDGET_TOKENS, chunk_tokens=None),
    )


def budget_info(streaming_users: int) -> BudgetInfo:
    """Return each step's tokens, on the axis of the most streams."""
    experiment, longest = budgeted(streaming_users), simulate(budgeted(STREAMS[-1]))
    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    return BudgetInfo(
        decode_tokens=result.steps.decode_tokens,
        prefill_tokens=result.steps.prefill_tokens,
        budget_tokens=BUDGET_TOKENS,
        streaming_users=streaming_users,
        prompt_tokens=PROMPT_TOKENS,
        longest_gap_ms=metrics.longest_stall_ms or 0.0,
        steps_shown=len(longest.steps),
        formula=experiment.cost.formula(),
    )


def stall_free(streaming_users: int) -> Shown:
    """Return the scene: no stream is left out of a step, whatever the prompt."""
    info, experiment = budget_info(streaming_users), budgeted(streaming_users)
    whole_ms = experiment.first_step_ms(PROMPT_TOKENS)
    return Shown(
        spec=budget_figure(info),
        alt=budget_alt(info),
        sentences=(
            f"A step may hold {count(BUDGET_TOKENS, 'token')}. The "
            f"{count(streaming_users, 'decode')} take theirs first, and a slice of the prompt "
            f"gets the {info.left_tokens:,} that are left: {count(info.prefill_steps, 'step')} "
            "compute it.",
            f"Every stream has a token in every step, and no step is longer than a full one: the "
            f"longest gap is {ms(info.longest_gap_ms)}, where the whole prompt in one step would "
            f"make it {ms(whole_ms)}.",
        ),
        columns={
            "step": list(range(1, len(info.decode_tokens) + 1)),
            "decode_tokens": info.decode_tokens.tolist(),
            "prefill_tokens": info.prefill_tokens.tolist(),
            "left_of_the_budget": (
                BUDGET_TOKENS - info.decode_tokens - info.prefill_tokens
            ).tolist(),
        },
        link=Link(
            label="The same in the simulator",
            page="",
            parameters={
                "budget": str(BUDGET_TOKENS),
                "users": str(streaming_users),
                "chunk": str(PROMPT_TOKENS),
            },
        ),
    )


STALL_FREE = Scene(
    slug="stall-free",
    headline="Decodes first, the prompt gets what is left",
    control=Control(
        key="streams",
        label="Streams that are decoding",
        options=STREAMS,
        default=24,
        about=f"Each takes one token of the step's budget of {BUDGET_TOKENS}.",
    ),
    show=stall_free,
)
