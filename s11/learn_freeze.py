"""Scene 1: one long prompt, taken whole, and what everyone else sees of it."""

from __future__ import annotations

from s11.experiment import Experiment
from s11.learn_scene import Control, Link, Scene, Shown
from s11.learn_timeline import timeline
from s11.words import count, ms, times
from s11.workload import chapter_scenario

PROMPTS = (512, 1024, 2048, 4096, 8192, 16_384)
END_ROOM, TOP_ROOM = 1.03, 1.16  # of the longest run, of the highest step


def whole_prompt(prompt_tokens: int) -> Experiment:
    """Return the chapter's scenario with chunking off."""
    scenario = chapter_scenario(prompt_tokens=prompt_tokens)
    return Experiment(workload=scenario).chunking_off()


def freeze(prompt_tokens: int) -> Shown:
    """Return the scene: the longer the prompt, the longer every stream stands still."""
    experiment, largest = whole_prompt(prompt_tokens), whole_prompt(PROMPTS[-1])
    workload = experiment.workload
    longest_ms, usual_ms = largest.first_step_ms(PROMPTS[-1]), experiment.first_step_ms(0)
    others = workload.lead_in_steps + workload.tail_steps
    shown = timeline(
        experiment,
        end_ms=END_ROOM * (longest_ms + others * usual_ms),
        top_ms=TOP_ROOM * longest_ms,
    )
    stall_ms = shown.metrics.longest_stall_ms or 0.0
    users = count(workload.streaming_users, "stream")
    return Shown(
        spec=shown.spec,
        alt=shown.alt,
        sentences=(
            f"{users.capitalize()} get a token every {ms(usual_ms)}. Then somebody sends a prompt "
            f"of {count(prompt_tokens, 'token')}, and one step computes all of it.",
            f"No token leaves a step before it ends, so every stream waits {ms(stall_ms)}: "
            f"{times(stall_ms / usual_ms)} its usual gap.",
        ),
        columns=shown.columns,
        link=Link(
            label="The same in the simulator",
            page="",
            parameters={"prompt": str(prompt_tokens), "chunking": "false"},
        ),
    )


FREEZE = Scene(
    slug="freeze",
    headline="One long prompt freezes every stream",
    control=Control(
        key="whole",
        label="Length of the long prompt (tokens)",
        options=PROMPTS,
        default=8192,
        about="Chunking is off: the whole prompt is computed in one step.",
    ),
    show=freeze,
)
