"""Scene 10: what real engines make of one load, as they come."""

from __future__ import annotations

from s11.experiment import Experiment
from s11.learn_scene import Control, Link, Scene, Shown
from s11.learn_timeline import Timeline, timeline
from s11.presets import PRESETS, TITLES, EnginePreset, flag
from s11.simulator import simulate
from s11.words import count, ms, times
from s11.workload import chapter_scenario

PROMPT_TOKENS = 32_768
ENGINES: dict[str, str] = {
    "vLLM, large GPU": "vllm-16k",
    "vLLM, smaller GPU": "vllm-2k",
    "SGLang": "sglang-8k",
    "TensorRT-LLM": "tensorrt-llm",
}
"""By what the control calls it, the preset; `s11.presets` says for which versions it speaks."""

END_ROOM, TOP_ROOM = 1.03, 1.16  # of the longest run, of the whole prompt's step


def served(preset: EnginePreset) -> Experiment:
    """Return one 32k prompt among the chapter's streams, on an engine as it comes."""
    return preset.of(Experiment(workload=chapter_scenario(prompt_tokens=PROMPT_TOKENS)))


def shown_by(preset: EnginePreset) -> Timeline:
    """Return the engine's timeline, on the axes of all."""
    runs = [simulate(served(PRESETS[name])) for name in ENGINES.values()]
    experiment = served(preset)
    return timeline(
        experiment,
        end_ms=END_ROOM * max(float(run.steps.end_ms[-1]) for run in runs),
        top_ms=TOP_ROOM * max(float(run.steps.duration_ms.max()) for run in runs),
        about=(f"{preset.title}, as it comes",),
    )


def engine(name: str) -> Shown:
    """Return the scene: an engine's defaults on the load that all of them get."""
    preset = PRESETS[ENGINES[name]]
    drawn = shown_by(preset)
    return Shown(
        spec=drawn.spec,
        alt=f"{preset.title}. {drawn.alt}",
        sentences=(f"{preset.speaks_for}: {_knobs(preset)}.", _told(preset, drawn)),
        columns=_columns(),
        link=Link(
            label="This engine in the simulator",
            page="",
            parameters=_parameters(preset),
        ),
    )


def _knobs(preset: EnginePreset) -> str:
    limits = preset.limits
    budget = flag(preset.policy, "token_budget")
    told = []
    if limits.token_budget:
        told.append(f"at most {count(limits.token_budget, 'token')} a step (`{budget}`)")
    if not limits.chunking:
        told.append(f"prompts are not cut (`{flag(preset.policy, 'chunking')}` is off)")
    if limits.chunk_tokens:
        told.append(
            f"chunks of {count(limits.chunk_tokens, 'token')} "
            f"(`{flag(preset.policy, 'chunk_tokens')}`) in steps of their own"
        )
    return ", ".join(told)


def _told(preset: EnginePreset, drawn: Timeline) -> str:
    result, metrics = drawn.result, drawn.metrics
    experiment = served(preset)
    if metrics.ttft_ms is None:
        return (
            f"A prompt of {count(PROMPT_TOKENS, 'token')} is longer than that and never runs: the "
            f"streams keep their {ms(metrics.longest_stall_ms)}, and chunked prefill is what "
            "would let it in."
        )
    stall_ms, steps = metrics.longest_stall_ms or 0.0, int((result.steps.prefill_tokens > 0).sum())
    target_ms = experiment.itl_target_ms
    against, moral = f"within the target of {ms(target_ms)}", ""
    if stall_ms > target_ms:
        against = f"{times(stall_ms / target_ms)} the target of {ms(target_ms)}"
        moral = " Defaults serve throughput; whoever promises a gap sets the size."
    held = " while no stream gets a token" if result.steps.held_decodes.any() else ""
    return (
        f"The {PROMPT_TOKENS:,}-token prompt takes {count(steps, 'step')}{held}: the longest stall "
        f"is {ms(stall_ms)}, {against}, and the first token comes after {ms(metrics.ttft_ms)}."
        f"{moral}"
    )


def _columns() -> dict[str, list[object]]:
    """Return all engines' figures, a row for each."""
    rows = [(name, shown_by(PRESETS[preset])) for name, preset in ENGINES.items()]
    return {
        "engine": [name for name, _ in rows],
        "speaks_for": [PRESETS[ENGINES[name]].speaks_for for name, _ in rows],
        "token_budget": [PRESETS[ENGINES[name]].limits.token_budget for name, _ in rows],
        "chunk_tokens": [PRESETS[ENGINES[name]].limits.chunk_tokens for name, _ in rows],
        "longest_stall_ms": [drawn.metrics.longest_stall_ms for _, drawn in rows],
        "ttft_ms": [drawn.metrics.ttft_ms for _, drawn in rows],
        "steps_over_target": [drawn.metrics.steps_over_target for _, drawn in rows],
    }


def _parameters(preset: EnginePreset) -> dict[str, str]:
    """Return the simulator's parameters; no cap is a cap of the whole prompt."""
    limits = preset.limits
    told = {
        "policy": TITLES[preset.policy],
        "prompt": str(PROMPT_TOKENS),
        "chunk": str(limits.chunk_tokens or PROMPT_TOKENS),
        "budget": None if limits.token_budget is None else str(limits.token_budget),
        "seats": None if limits.max_seqs is None else str(limits.max_seqs),
        "chunking": None if limits.chunking else "false",
    }
    return {name: value for name, value in told.items() if value is not None}


PRODUCTION = Scene(
    slug="production",
    headline="In production: engines as they come",
    control=Control(
        key="served",
        label="Engine with its defaults",
        options=tuple(ENGINES),
        default="vLLM, large GPU",
        about="One load for all: a 32,768-token prompt among 24 streams.",
    ),
    show=engine,
)
