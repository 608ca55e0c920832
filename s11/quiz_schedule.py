"""Two questions about schedules: why chunking ends starvation, and when it only costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from s11.catalog import MODELS, Deployment
from s11.costs import AnyCost, LinearCost, RooflineCost
from s11.experiment import Experiment
from s11.metrics import Metrics, measure
from s11.plan import EngineLimits
from s11.quiz import SIMULATOR, Answer, PageLink, Question
from s11.request_metrics import request_metrics
from s11.simulator import simulate
from s11.words import count, ms, times
from s11.workload import Request, chapter_scenario

PROMPT_TOKENS, SHORT_TOKENS, BEHIND_TOKENS = 32_768, 8_192, 512
BUDGET_TOKENS, CHUNK_TOKENS = 8_192, 1_024
USERS, MANY_USERS = 24, 256
MODEL, GPU, GPU_TITLE = "llama-3.1-8b", "h100", "H100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Starved:
    """A prompt longer than the budget, first in the queue, alone and with a short one behind it.

    never_scheduled: of the two, those that wait for ever with chunking off.
    steps, ttft_ms, fullest_step_tokens: of the prompt alone, with chunking on.
    first_of_two_ms, behind_ttft_ms: the TTFT of both, with chunking on.
    """

    never_scheduled: int
    steps: int
    ttft_ms: float
    first_of_two_ms: float
    behind_ttft_ms: float
    prefill_ms: float
    fullest_step_tokens: int


def starved() -> Starved:
    """Run the load that starves, with chunking off and on."""
    scenario = chapter_scenario(prompt_tokens=PROMPT_TOKENS, streaming_users=USERS)
    behind = Request(request_id="behind", prompt_tokens=BEHIND_TOKENS)
    alone = Experiment(
        workload=scenario, limits=EngineLimits(token_budget=BUDGET_TOKENS, chunk_tokens=None)
    )
    both = replace(alone, workload=replace(scenario, requests=(*scenario.requests, behind)))
    steps = simulate(alone).steps
    first_ms, second_ms = request_metrics(simulate(both)).ttft_ms.tolist()
    return Starved(
        never_scheduled=len(simulate(both.chunking_off()).never_scheduled),
        steps=int((steps.prefill_tokens > 0).sum()),
        ttft_ms=float(request_metrics(simulate(alone)).ttft_ms[0]),
        first_of_two_ms=first_ms,
        behind_ttft_ms=second_ms,
        prefill_ms=float(steps.prefill_ms.sum()),
        fullest_step_tokens=int((steps.prefill_tokens + steps.decode_tokens).max()),
    )


def starvation_question() -> Question:
    """Return the question why chunking also ends starvation."""
    told = starved()
    left = BUDGET_TOKENS - USERS
    prompt, steps = f"{PROMPT_TOKENS:,}", count(told.steps, "step")
    budget = (("prompt", str(PROMPT_TOKENS)), ("budget", str(BUDGET_TOKENS)))
    return Question(
        name="starvation",
        title="Starvation",
        asked=(
            f"A prompt of {prompt} tokens is first in the queue of an engine that computes at most "
            f"{BUDGET_TOKENS:,} tokens in a step. With chunking off it never runs, nor does anyone "
            "behind it. Why does chunking end that?"
        ),
        answers=(
            Answer(
                "A chunk costs less than the same tokens of a whole prompt, so the work fits.",
                f"The work is the same. {steps.capitalize()} compute the same {prompt} tokens, "
                f"{ms(told.prefill_ms)} of prefill in all, and each step adds its fixed cost once "
                "more. What has changed is that the prompt need not fit in one step.",
            ),
            Answer(
                "The short requests behind it may overtake it now.",
                "Nobody overtakes: the order stays first come, first served. The long prompt "
                "itself begins in the first step that sees it. With "
                f"{count(BEHIND_TOKENS, 'token')} of another request behind it, it has its first "
                f"token after {ms(told.first_of_two_ms)}, and the other no sooner, after "
                f"{ms(told.behind_ttft_ms)}.",
            ),
            Answer(
                "It takes what is left of the budget in each step, so it always moves on.",
                f"Beside {USERS} decodes {left:,} tokens are left in a step, and the prompt takes "
                f"them: {steps}, first token after {ms(told.ttft_ms)}. Indivisible, it waits for "
                f"{prompt} tokens in one step, which no step has: with one request behind it, "
                f"{told.never_scheduled} wait for ever.",
                right=True,
            ),
            Answer(
                "Once prompts are cut, only the decodes count against the budget.",
                f"Prompt tokens count as before: the fullest step of the chunked run has "
                f"{count(told.fullest_step_tokens, 'token')}, of which {USERS} are decodes. The "
                "budget holds; what could not be divided now can be.",
            ),
        ),
        scene=3,
        shown_by=(
            PageLink("Simulator: it never runs", SIMULATOR, (*budget, ("chunking", "false"))),
            PageLink(
                "Simulator: the same in chunks", SIMULATOR, (*budget, ("chunk", str(PROMPT_TOKENS)))
            ),
        ),
    )


def _run(*, prompt_tokens: int, users: int, cost: AnyCost | None = None) -> tuple[Metrics, Metrics]:
    """Return the figures with chunking off and on."""
    chunked = Experiment(
        workload=chapter_scenario(prompt_tokens=prompt_tokens, streaming_users=users),
        cost=cost or LinearCost(),
    ).with_chunk_tokens(CHUNK_TOKENS)
    off, on = (
        measure(simulate(each), itl_target_ms=each.itl_target_ms)
        for each in (chunked.chunking_off(), chunked)
    )
    return off, on


def _stalls(pair: tuple[Metrics, Metrics]) -> tuple[str, str, str]:
    """Return the longest stall with chunking off and on, and how many times less it is."""
    off, on = (each.longest_stall_ms or 0.0 for each in pair)
    return ms(off), ms(on), times(off / on)


def no_help_question() -> Question:
    """Return the question on which load chunking only costs."""
    idle_off, idle_on = _run(prompt_tokens=PROMPT_TOKENS, users=0)
    long, short = (_run(prompt_tokens=n, users=USERS) for n in (PROMPT_TOKENS, SHORT_TOKENS))
    many = _run(prompt_tokens=PROMPT_TOKENS, users=MANY_USERS)
    machine = RooflineCost(deployment=Deployment(model=MODELS[MODEL], gpu=GPU))
    fast = _run(prompt_tokens=PROMPT_TOKENS, users=USERS, cost=machine)
    long_off, long_on, long_times = _stalls(long)
    many_off, many_on, many_times = _stalls(many)
    fast_off, fast_on, _ = _stalls(fast)
    title = MODELS[MODEL].title
    prompt = (("prompt", str(PROMPT_TOKENS)),)
    return Question(
        name="no-help",
        title="When chunking does not help",
        asked=(
            f"On which of these loads does a chunk size of {CHUNK_TOKENS:,} tokens only cost, "
            "and gain nothing?"
        ),
        answers=(
            Answer(
                "A very long prompt beside a few streams.",
                f"That is where it gains most. At {PROMPT_TOKENS:,} tokens the longest stall falls "
                f"from {long_off} to {long_on}, {long_times} less; at {SHORT_TOKENS:,} tokens "
                f"{_stalls(short)[2]} less. At these costs the chunked stall does not grow with "
                "the prompt.",
            ),
            Answer(
                "A long prompt beside hundreds of streams.",
                f"Their decodes make every step longer, and still each of {MANY_USERS} streams is "
                f"spared a freeze: {many_off} become {many_on}, {many_times} less. Where a token "
                "budget holds, they take their share of it first, and the chunks get the rest.",
            ),
            Answer(
                "A long prompt on a server where nobody streams.",
                "There is no stall to prevent, and every chunk repeats the fixed cost of a step: "
                f"the first token comes after {ms(idle_on.ttft_ms)} instead of "
                f"{ms(idle_off.ttft_ms)}. Chunking pays only where somebody waits beside the "
                "prompt.",
                right=True,
            ),
            Answer(
                "A long prompt beside streams, on a fast GPU.",
                f"Fast is not instant: {title} on one {GPU_TITLE}, as modelled, takes {fast_off} "
                f"for {PROMPT_TOKENS:,} tokens in one step, and every stream stands still for as "
                f"long. In chunks the longest stall is {fast_on}.",
            ),
        ),
        scene=5,
        shown_by=(
            PageLink("Simulator: nobody streams", SIMULATOR, (*prompt, ("users", "0"))),
            PageLink(
                f"Simulator: {title} on {GPU_TITLE}, chunking off",
                SIMULATOR,
                (*prompt, ("model", title), ("chunking", "false")),
            ),
        ),
    )
