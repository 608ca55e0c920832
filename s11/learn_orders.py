"""Scene 2: whatever the order of the queue, somebody waits for the long prompt's whole pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from s11.experiment import Experiment
from s11.figures.learn_orders import QueueInfo, QueueRow, queue_alt, queue_figure
from s11.learn_scene import Control, Link, Scene, Shown
from s11.plan import EngineLimits
from s11.results import Result
from s11.simulator import simulate
from s11.words import ms
from s11.workload import Request, Workload

LONG = Request(request_id="long prompt", prompt_tokens=8192, output_tokens=4, arrival_ms=20.0)
SHORT = tuple(
    Request(
        request_id=f"short {number}",
        prompt_tokens=256,
        output_tokens=12,
        arrival_ms=LONG.arrival_ms,
    )
    for number in (1, 2)
)
CHATS = tuple(
    Request(request_id=f"chat {number}", prompt_tokens=64, output_tokens=24) for number in (1, 2, 3)
)
BUDGET_TOKENS = 8320  # the long prompt and all decodes fit, the short prompts no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A way to go through a queue without cutting a prompt.

    policy: who simulates it. queue: the order in which those that arrive together are taken.
    does: what it does, as the rest of a sentence.
    """

    policy: str
    queue: tuple[Request, ...]
    does: str


ORDERS: dict[str, Order] = {
    "First come": Order(
        policy="whole_prompt",
        queue=(*CHATS, LONG, *SHORT),
        does="takes the long prompt first",
    ),
    "Shortest first": Order(
        policy="whole_prompt",
        queue=(*CHATS, *SHORT, LONG),
        does="lets the short prompts pass, and then comes the long one",
    ),
    "Prompts first": Order(
        policy="prefill_first",
        queue=(*CHATS, LONG, *SHORT),
        does="computes all prompts in steps of their own before the chats go on",
    ),
    "Streams first": Order(
        policy="request_level",
        queue=(*CHATS, LONG, *SHORT),
        does="lets no prompt in before the chats have ended",
    ),
}


@lru_cache
def queued(name: str) -> tuple[Experiment, Result]:
    """Return the queue in one order, and its run."""
    order = ORDERS[name]
    experiment = Experiment(
        workload=Workload(requests=order.queue),
        policy=order.policy,
        limits=EngineLimits(token_budget=BUDGET_TOKENS, chunk_tokens=None),
    )
    return experiment, simulate(experiment)


def queue_info(name: str) -> QueueInfo:
    """Return what to draw of one order, on the axis of all."""
    experiment, result = queued(name)
    requests = experiment.workload.requests
    rows = {request.request_id: _row(result, at) for at, request in enumerate(requests)}
    carrying = result.slices.step[result.slices.tokens == LONG.prompt_tokens]
    ends = [float(queued(other)[1].steps.end_ms[-1]) for other in ORDERS]
    return QueueInfo(
        order=name,
        rows=tuple(rows[request.request_id] for request in (LONG, *SHORT, *CHATS)),
        pass_ms=float(result.steps.duration_ms[carrying[0]]),
        target_ms=experiment.itl_target_ms,
        end_ms=1.02 * max(ends),
        caption=(
            f"{LONG.prompt_tokens:,}-token prompt, 2 short, 3 chats; no prompt is cut",
            f"{experiment.cost.formula()}, s11",
        ),
    )


def _row(result: Result, request: int) -> QueueRow:
    slices, steps, table = result.slices, result.steps, result.requests
    mine = slices.step[slices.request == request]
    tokens_ms = result.token_times_ms(request)
    edges = np.concatenate(([table.arrival_ms[request]], tokens_ms))
    longest = int(np.argmax(np.diff(edges)))
    return QueueRow(
        name=table.request_id[request],
        prefill_left_ms=steps.start_ms[mine],
        prefill_width_ms=steps.duration_ms[mine],
        tokens_ms=tokens_ms,
        wait_ms=(float(edges[longest]), float(edges[longest + 1])),
    )


def reorder(name: str) -> Shown:
    """Return the scene: the wait moves from one to another, and is never shorter than the pass."""
    info = queue_info(name)
    everywhere = [queue_info(other) for other in ORDERS]
    longest = [one.longest.longest_ms for one in everywhere]
    passes = [one.pass_ms for one in everywhere]
    who = _who({row.name for row in info.rows[1:] if row.longest_ms >= info.pass_ms})
    return Shown(
        spec=queue_figure(info),
        alt=queue_alt(info),
        sentences=(
            f"{name} {ORDERS[name].does}: {who} wait up to {ms(info.longest.longest_ms)} for a "
            "token.",
            f"A scheduler chooses between steps, never within one, and the step that carries the "
            f"whole prompt takes {ms(min(passes))} wherever it stands: in none of the four orders "
            f"is the longest wait under {ms(min(longest))}.",
        ),
        columns={
            "order": list(ORDERS),
            "longest_wait_ms": [round(value, 3) for value in longest],
            "who_waits_longest": [one.longest.name for one in everywhere],
            "step_with_the_long_prompt_ms": [round(value, 3) for value in passes],
            "ttft_of_the_long_prompt_ms": [
                round(float(one.rows[0].tokens_ms[0]) - LONG.arrival_ms, 3) for one in everywhere
            ],
        },
        link=_link(name),
    )


def _who(waiting: set[str]) -> str:
    """Return who waits for at least the long prompt's pass, in words."""
    groups = (("the chats", CHATS), ("the short prompts", SHORT))
    told = [name for name, group in groups if {each.request_id for each in group} <= waiting]
    return " and ".join(told) or " and ".join(sorted(waiting))


def _link(name: str) -> Link:
    """Return the comparison of this order with chunked prefill on the same requests."""
    experiment, _ = queued(name)
    requests = experiment.workload.requests
    return Link(
        label="This order beside chunked prefill, in Compare schedulers",
        page="compare",
        parameters={
            "scene": "figure-7",
            "engines": f"{experiment.policy}~~chunked~cap-1024",
            "requests": "~~".join(
                f"{r.request_id}~{r.arrival_ms:g}~{r.prompt_tokens}~{r.output_tokens}"
                for r in requests
            ),
            "budget": str(BUDGET_TOKENS),
            "target": f"{experiment.itl_target_ms!r}",
        },
    )


REORDER = Scene(
    slug="reorder",
    headline="Reordering moves the wait, it cannot remove it",
    control=Control(
        key="order",
        label="Order of the queue",
        options=tuple(ORDERS),
        default="First come",
        about="Four schedulers, each simulated on the same six requests; none cuts a prompt.",
    ),
    show=reorder,
)
