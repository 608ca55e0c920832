"""Two questions about the trade-off: which metric moves, and what the best size depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from s11.catalog import MODELS, Deployment
from s11.experiment import Experiment
from s11.largest_chunk import largest_chunk_within_target
from s11.metrics import Metrics, measure
from s11.quiz import SIMULATOR, Answer, PageLink, Question
from s11.simulator import simulate
from s11.tuning import largest_that_fits, tuned_experiment
from s11.words import count, ms, times
from s11.workload import chapter_scenario

PROMPT_TOKENS, SHORT_TOKENS, LONGEST_TOKENS = 32_768, 8_192, 131_072
CHUNK_TOKENS, SMALL_CHUNK_TOKENS = 1_024, 64
USERS, ANSWER_TOKENS, CONTEXT_TOKENS = 24, 1_000, 1_024
TIGHT_MS, LOOSE_MS = 25.0, 50.0
MODEL, MOST_STEPS = "llama-3.1-8b", 20_000
GPUS = {"h100": "H100", "l40s": "L40S"}


def over_an_answer() -> tuple[Metrics, Metrics]:
    """Return the figures with chunking off and on, each over the same tokens of every stream.

    Both runs have `ANSWER_TOKENS` steps: the percentiles and means of a shorter window would
    depend on where it ends.
    """
    scenario = chapter_scenario(prompt_tokens=PROMPT_TOKENS, streaming_users=USERS)
    chunked = Experiment(workload=scenario).with_chunk_tokens(CHUNK_TOKENS)
    found = []
    for experiment in (chunked.chunking_off(), chunked):
        shorter = len(simulate(experiment).steps)
        tail = scenario.tail_steps + ANSWER_TOKENS - shorter
        longer = replace(experiment, workload=replace(scenario, tail_steps=tail))
        found.append(measure(simulate(longer), itl_target_ms=longer.itl_target_ms))
    return found[0], found[1]


def metrics_question() -> Question:
    """Return the question which figure moves, and which barely does."""
    off, on = over_an_answer()
    stalls = [each.longest_stall_ms or 0.0 for each in (off, on)]
    means = [ms(each.itl_mean_ms) for each in (off, on)]
    rates = [f"{each.decode_tokens_per_s or 0.0:,.0f}" for each in (off, on)]
    chunks = -(-PROMPT_TOKENS // CHUNK_TOKENS)
    share = stalls[0] / ANSWER_TOKENS
    prompt = (("prompt", str(PROMPT_TOKENS)),)
    return Question(
        name="metrics",
        title="What moves, and what does not",
        asked=(
            f"A {PROMPT_TOKENS:,}-token prompt joins {USERS} streams. Chunking is switched on, "
            f"{CHUNK_TOKENS:,} tokens a chunk. Over {ANSWER_TOKENS:,} tokens of each stream, which "
            "figure moves most, and which barely?"
        ),
        answers=(
            Answer(
                "The longest stall moves most; the mean ITL barely moves.",
                f"The longest stall falls from {ms(stalls[0])} to {ms(stalls[1])}, "
                f"{times(stalls[0] / stalls[1])} less. The mean ITL is {means[0]} before and "
                f"{means[1]} after: the same work in as many steps, spread otherwise. A mean "
                "cannot show a freeze.",
                right=True,
            ),
            Answer(
                "The mean ITL moves most; the longest stall barely, as the work is the same.",
                f"The other way round: the mean ITL stays ({means[0]}, {means[1]}), because the "
                f"freeze is one gap of {ANSWER_TOKENS:,} and weighs {ms(share)} in it. The longest "
                f"stall falls from {ms(stalls[0])} to {ms(stalls[1])}.",
            ),
            Answer(
                "Decode throughput moves most, since small chunks fill the GPU better.",
                f"{rates[0]} tokens/s before and {rates[1]} after: the same tokens in the same "
                "time. Chunking moves the prompt's work in time and takes none of it away; "
                "the streams' longest stall is what changes.",
            ),
            Answer(
                "The prompt's TTFT falls most, since its first chunk runs at once.",
                f"It grows, from {ms(off.ttft_ms)} to {ms(on.ttft_ms)}: a prompt's first token "
                f"comes with the last of its {chunks} chunks, and each chunk's step repeats the "
                "fixed cost and carries the decodes. That is the price; the shorter stall is what "
                "it buys.",
            ),
        ),
        scene=4,
        shown_by=(
            PageLink("Simulator: chunking off", SIMULATOR, (*prompt, ("chunking", "false"))),
            PageLink("Simulator: in chunks", SIMULATOR, (*prompt, ("chunk", str(CHUNK_TOKENS)))),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The largest chunk within a tight and a loose target, in tokens; None where none is."""

    tight: int | None
    loose: int | None


def linear_sizes(prompt_tokens: int) -> Sizes:
    """Return the sizes under the chapter's costs."""
    load = chapter_scenario(prompt_tokens=prompt_tokens, streaming_users=USERS)
    tight, loose = (
        largest_chunk_within_target(Experiment(workload=load, itl_target_ms=target))
        for target in (TIGHT_MS, LOOSE_MS)
    )
    return Sizes(tight=tight, loose=loose)


def machine_sizes(gpu: str) -> Sizes:
    """Return the sizes on one GPU, as the chunk size page finds them."""
    tight, loose = (
        largest_that_fits(
            tuned_experiment(
                Deployment(model=MODELS[MODEL], gpu=gpu),
                policy="vllm_v1",
                prompt_tokens=SHORT_TOKENS,
                streaming_users=USERS,
                user_context_tokens=CONTEXT_TOKENS,
                itl_target_ms=target,
            ),
            max_steps=MOST_STEPS,
        )
        for target in (TIGHT_MS, LOOSE_MS)
    )
    return Sizes(tight=tight, loose=loose)


def size_question() -> Question:
    """Return the question what the best chunk size depends on."""
    short, longest = linear_sizes(SHORT_TOKENS), linear_sizes(LONGEST_TOKENS)
    on = {title: machine_sizes(gpu) for gpu, title in GPUS.items()}
    first = next(iter(GPUS.values()))
    told = "; ".join(f"{title} {_size(s.tight)} and {_size(s.loose)}" for title, s in on.items())
    model, targets = MODELS[MODEL].title, f"{TIGHT_MS:g} and {LOOSE_MS:g} ms"
    load = Experiment(workload=chapter_scenario(prompt_tokens=SHORT_TOKENS, streaming_users=USERS))
    small, usual = (
        measure(simulate(load.with_chunk_tokens(size)), itl_target_ms=load.itl_target_ms)
        for size in (SMALL_CHUNK_TOKENS, CHUNK_TOKENS)
    )
    return Question(
        name="size",
        title="The best chunk size",
        asked="An operator looks for the best chunk size. What does it depend on?",
        answers=(
            Answer(
                "On the prompt: a fixed share of its length, so that none takes too many steps.",
                f"At the chapter's costs the largest chunk within {LOOSE_MS:g} ms is "
                f"{_size(short.loose)} tokens for a prompt of {SHORT_TOKENS:,} and "
                f"{_size(longest.loose)} for one of {LONGEST_TOKENS:,}. A step does not know how "
                "long the prompt is; a real GPU's late chunks feel it a little, in attention.",
            ),
            Answer(
                "On the ITL target, and on what a step costs on this machine with its decodes.",
                f"At the chapter's costs, targets of {targets} allow {_size(short.tight)} and "
                f"{_size(short.loose)} tokens. For {model} beside {USERS} streams, as modelled: "
                f"{told}. Above that streams stall; far below, the fixed cost is paid too often.",
                right=True,
            ),
            Answer(
                "On the GPU alone: the fewest tokens that keep its arithmetic busy.",
                "That bounds it from below: smaller chunks waste throughput. From above the "
                f"target bounds it, and that is no property of the GPU: on the same {first}, "
                f"{_size(on[first].tight)} tokens keep {TIGHT_MS:g} ms and "
                f"{_size(on[first].loose)} keep {LOOSE_MS:g} ms.",
            ),
            Answer(
                "On next to nothing: the smaller, the smoother, so take the smallest.",
                f"Chunks of {SMALL_CHUNK_TOKENS} stall for {ms(small.longest_stall_ms)} and chunks "
                f"of {CHUNK_TOKENS:,} for {ms(usual.longest_stall_ms)}, both within "
                f"{LOOSE_MS:g} ms. But the first token of {count(SHORT_TOKENS, 'prompt token')} "
                f"comes after {ms(small.ttft_ms)} instead of {ms(usual.ttft_ms)}: the fixed cost "
                f"{SHORT_TOKENS // SMALL_CHUNK_TOKENS} times.",
            ),
        ),
        scene=7,
        shown_by=(
            PageLink(
                f"Chunk size: {first}, {TIGHT_MS:g} ms",
                "chunk_size",
                (("size_target", f"{TIGHT_MS:g}"),),
            ),
            PageLink(f"Chunk size: L40S, {LOOSE_MS:g} ms", "chunk_size", (("gpu", "L40S"),)),
        ),
    )


def _size(tokens: int | None) -> str:
    return "none" if tokens is None else f"{tokens:,}"
