"""Scene 5: what cutting a prompt costs, and what it does not."""

from __future__ import annotations

from s11.experiment import Experiment
from s11.figures.learn_cost import CostInfo, PromptCost, cost_alt, cost_figure
from s11.learn_scene import Control, Link, Scene, Shown
from s11.metrics import measure
from s11.simulator import simulate
from s11.words import count, ms
from s11.workload import chapter_scenario

PROMPT_TOKENS = 8192
CHUNKS = (256, 512, 1024, 2048, 4096, 8192)


def prompt_cost(chunk_tokens: int) -> PromptCost:
    """Return what the chapter's prompt takes in chunks of so many tokens, from its steps."""
    workload = chapter_scenario(prompt_tokens=PROMPT_TOKENS)
    experiment = Experiment(workload=workload).with_chunk_tokens(chunk_tokens)
    result = simulate(experiment)
    steps, slices = result.steps, result.slices
    carrying = steps.prefill_tokens > 0
    tokens, before = slices.tokens, slices.start_token
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    return PromptCost(
        steps=int(carrying.sum()),
        prefill_ms=float(steps.prefill_ms[carrying].sum()),
        fixed_ms=float(steps.fixed_ms[carrying].sum()),
        decode_ms=float(steps.decode_ms[carrying].sum()),
        ttft_ms=metrics.ttft_ms or 0.0,
        reread_tokens=int(before.sum()),
        pairs=int((tokens * before + tokens * (tokens + 1) // 2).sum()),
    )


def cost_info(chunk_tokens: int) -> CostInfo:
    """Return what a chunk size costs, on the axes of the smallest."""
    dearest = prompt_cost(CHUNKS[0])
    experiment = Experiment()
    return CostInfo(
        chunk_tokens=chunk_tokens,
        prompt_tokens=PROMPT_TOKENS,
        streaming_users=experiment.workload.streaming_users,
        whole=prompt_cost(PROMPT_TOKENS),
        chunked=prompt_cost(chunk_tokens),
        most_ms=dearest.ttft_ms,
        most_reread=dearest.reread_tokens,
        formula=experiment.cost.formula(),
    )


def cost(chunk_tokens: int) -> Shown:
    """Return the scene: a later first token, keys read again, and no more attention."""
    info = cost_info(chunk_tokens)
    whole, cut = info.whole, info.chunked
    return Shown(
        spec=cost_figure(info),
        alt=cost_alt(info),
        sentences=(_time(info), _attention(info)),
        columns={
            "cut": ["one pass", count(cut.steps, "chunk")],
            **{
                name: [round(getattr(each, name), 3) for each in (whole, cut)]
                for name in ("steps", "ttft_ms", "prefill_ms", "fixed_ms", "decode_ms")
            },
            "reread_tokens": [whole.reread_tokens, cut.reread_tokens],
            "query_key_pairs": [whole.pairs, cut.pairs],
        },
        link=Link(
            label="The same in the simulator",
            page="",
            parameters={"prompt": str(PROMPT_TOKENS), "chunk": str(chunk_tokens)},
        ),
    )


def _time(info: CostInfo) -> str:
    whole, cut = info.whole, info.chunked
    if cut.steps == 1:
        return (
            f"A chunk that holds the whole prompt is one pass: its first token comes after "
            f"{ms(whole.ttft_ms)}. Move the slider to the left to see what cutting it costs."
        )
    more = cut.steps - 1
    return (
        f"The prompt's own work is {ms(cut.prefill_ms)} either way. But "
        f"{count(more, 'further step')} "
        f"{'repeats' if more == 1 else 'repeat'} the fixed cost and "
        f"{'carries' if more == 1 else 'carry'} the decodes, {ms(info.later_ms / more)} each, so "
        f"the first token comes after {ms(cut.ttft_ms)} instead of {ms(whole.ttft_ms)}."
    )


def _attention(info: CostInfo) -> str:
    whole, cut = info.whole, info.chunked
    same = f"attention computes the same {cut.pairs:,} query-key pairs"
    if cut.pairs != whole.pairs:
        same = f"attention computes {cut.pairs:,} query-key pairs and not {whole.pairs:,}"
    if cut.steps == 1:
        return f"Nothing is read twice, and its attention computes {cut.pairs:,} query-key pairs."
    return (
        f"Later chunks read the keys of earlier ones again, {cut.reread_tokens:,} tokens in all, "
        f"which this cost model does not price; {same}, so chunking adds reads but no attention "
        "arithmetic."
    )


COST = Scene(
    slug="cost",
    headline="What it costs: a later first token",
    control=Control(
        key="pieces",
        label="Chunk size (tokens)",
        options=CHUNKS,
        default=1024,
        about="The smaller the chunks, the more often the fixed cost of a step is paid.",
    ),
    show=cost,
)
