"""“Mixing is always best”: one load served three ways, gap by gap and prompt by prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from s11.catalog import Deployment
from s11.figures.myths_bars import Bar, Panel, Part, bars_figure
from s11.figures.piggyback_looks import SIMULATED, machine_line
from s11.figures.theme import FIXED, HAND_OVER, PREFILL, Spec
from s11.myths_mixing import CHUNK_TOKENS, STEP_TOKENS, TOKENS_EACH, Way, Ways
from s11.words import count, ms, times

LOOKS = {
    Way.MIXED: Part(name="mixed steps", colour=PREFILL, pattern="/"),
    Way.OWN_STEPS: Part(name="steps of their own", colour=FIXED),
    Way.TWO_GPUS: Part(name="a GPU for each", colour=HAND_OVER, pattern="\\"),
}
LABELS = {
    Way.MIXED: "mixed steps",
    Way.OWN_STEPS: "steps of<br>their own",
    Way.TWO_GPUS: "a GPU for<br>each (two)",
}
FIGURES = {
    "itl_p50_ms": ("Streams: median gap (ms)", "median gap"),
    "longest_stall_ms": ("Streams: longest gap (ms)", "longest gap"),
    "ttft_p50_ms": ("Prompts: median TTFT (ms)", "median TTFT"),
}
LITTLE = 1.05  # of the best: still called as good


def mixing_title(told: Ways) -> str:
    """Return the finding: on what mixing loses, or that it does not."""
    for name in ("itl_p50_ms", "ttft_p50_ms", "longest_stall_ms"):
        values = told.values(name)
        if values and values[Way.MIXED] > LITTLE * min(values.values()):
            what, factor = FIGURES[name][1], values[Way.MIXED] / min(values.values())
            return f"{what[0].upper()}{what[1:]}: {times(factor)} when mixed"
    return "Nothing to mix: all the same"


def mixing_figure(told: Ways, machine: Deployment) -> Spec:
    """Return the Plotly spec: a panel for each figure, a bar for each way."""
    return bars_figure(
        tuple(_panel(told, name) for name in _shown(told)),
        title=mixing_title(told),
        caption=[
            machine_line(machine),
            load_words(told),
            f"mixed: {CHUNK_TOKENS} prompt tokens a step; else up to {STEP_TOKENS:,}",
            SIMULATED,
        ],
        meta={
            "figure": "myth-mixing",
            "load": str(told.load),
            "itl_p50_ms": list(told.values("itl_p50_ms").values()),
            "ttft_p50_ms": list(told.values("ttft_p50_ms").values()),
        },
        legend=False,
    )


def load_words(told: Ways) -> str:
    """Return the load in a line."""
    streams = count(told.streaming_users, "stream") if told.streaming_users else "no stream"
    if not told.prompts:
        return f"{streams}, no prompt"
    each = " each" if told.prompts > 1 else ""
    prompts = f"{count(told.prompts, 'prompt')} of {count(told.prompt_tokens, 'token')}{each}"
    return f"{prompts}, {streams}"


def mixing_words(told: Ways) -> str:
    """Return what is true of this load, with the figure's own numbers."""
    sentences = []
    for name in _shown(told):
        values, what = told.values(name), FIGURES[name][1]
        best = min(values.values())
        winners = [str(way) for way in values if values[way] <= LITTLE * best]
        each = ", ".join(f"{ms(value)} with {way}" for way, value in values.items())
        if len(winners) == len(values):
            sentences.append(f"The {what} is much the same every way: {each}.")
        else:
            winning = ", and about as short with ".join(winners)
            sentences.append(f"The {what} is shortest with {winning}: {each}.")
    return " ".join([*sentences, _why(told)])


def mixing_alt(told: Ways, machine: Deployment) -> str:
    """Return the bars' numbers for those who cannot see them."""
    each = "; ".join(
        f"{FIGURES[name][1]}: "
        + ", ".join(f"{way} {ms(value)}" for way, value in told.values(name).items())
        for name in _shown(told)
    )
    return f"{mixing_title(told)}. {machine_line(machine)}. {load_words(told)}. {each}."


def mixing_columns(told: Ways) -> Mapping[str, Sequence[Any]]:
    """Return the figures of each way."""
    names = (*FIGURES, "itl_mean_ms", "itl_p99_ms", "ttft_p99_ms", "makespan_ms")
    columns: dict[str, list[Any]] = {"way": [str(way) for way in told.metrics]}
    for name in names:
        values = [getattr(metrics, name) for metrics in told.metrics.values()]
        columns[name] = [None if value is None else round(value, 4) for value in values]
    return columns


def _shown(told: Ways) -> list[str]:
    return [name for name in FIGURES if told.values(name)]


def _why(told: Ways) -> str:
    if not told.prompts:
        return "Without a prompt there is nothing to mix."
    if not told.streaming_users:
        return (
            "Where nobody decodes, no stream is to be protected: chunks only spread a prompt over "
            "more steps, and its first token comes later."
        )
    if told.prompts == 1:
        return (
            f"A mixed step slows a few of the {TOKENS_EACH} tokens of each stream a little, where "
            "steps of their own stop all streams once; a second GPU slows none, and is a second "
            "GPU."
        )
    return (
        "While prompts keep coming, every token of a stream pays for a chunk: that is when a "
        "second GPU for the prefill keeps the streams at the pace of their own step, or when "
        "prompts that can wait are better taken in steps of their own."
    )


def _panel(told: Ways, name: str) -> Panel:
    return Panel(
        head=FIGURES[name][0],
        unit="ms",
        bars=tuple(
            Bar(label=LABELS[way], parts=((LOOKS[way], value),), text=ms(value))
            for way, value in told.values(name).items()
        ),
    )
