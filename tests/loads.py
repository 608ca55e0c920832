"""Small loads that tests share: short names for what they build, and random ones."""

import random

from hypothesis import strategies as st

from s11 import EngineLimits, Experiment, LinearCost, Request, Workload, simulate
from s11.results import Result

# One millisecond a step whatever it carries: step numbers are times.
CLOCK = LinearCost(fixed_ms=1.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0)


def request(
    name: str, prompt_tokens: int, *, output_tokens: int = 1, arrival_ms: float = 0.0
) -> Request:
    return Request(
        request_id=name,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        arrival_ms=arrival_ms,
    )


def load(
    *requests: Request,
    users: int = 0,
    lead_in: int = 0,
    tail: int = 0,
    policy: str = "chunked",
    budget: int | None = None,
    chunk: int | None = None,
    seats: int | None = None,
    cost: LinearCost = CLOCK,
    target_ms: float = 50.0,
) -> Experiment:
    """An experiment of a few requests; without more said, on the one-millisecond clock."""
    return Experiment(
        workload=Workload(
            requests=requests, streaming_users=users, lead_in_steps=lead_in, tail_steps=tail
        ),
        policy=policy,
        limits=EngineLimits(token_budget=budget, chunk_tokens=chunk, max_seqs=seats),
        cost=cost,
        itl_target_ms=target_ms,
    )


def schedule(experiment: Experiment) -> list[dict[str, int]]:
    return list(simulate(experiment).schedule())


def times_ms(result: Result, name: str) -> list[float]:
    """When each output token of the request appeared."""
    return [float(t) for t in result.token_times_ms(result.requests.request_id.index(name))]


def random_experiment(draw: random.Random) -> Experiment:
    """A load whose every time is a short binary fraction, so that sums of them are exact.

    Arrivals on a grid of a quarter millisecond often fall exactly on the start of a step.
    """
    users = draw.choice((0, 0, 1, 3))
    requests = tuple(
        Request(
            request_id=f"r{number}",
            prompt_tokens=draw.choice((1, 2, draw.randrange(1, 20), draw.randrange(1, 120))),
            output_tokens=draw.choice((1, 2, draw.randrange(1, 15))),
            arrival_ms=draw.choice((0.0, draw.randrange(0, 60) / 4, draw.randrange(0, 500) / 4)),
        )
        for number in range(draw.randrange(0, 9))
    )
    return Experiment(
        workload=Workload(
            requests=requests,
            streaming_users=users,
            lead_in_steps=draw.randrange(0, 4),
            tail_steps=draw.randrange(0, 4),
        ),
        policy=draw.choice(("chunked", "chunked", "whole_prompt")),
        limits=EngineLimits(
            token_budget=draw.choice((None, max(1, users + draw.choice((0, 3, 12, 50))))),
            chunk_tokens=draw.choice((None, draw.randrange(1, 8), draw.randrange(1, 40))),
            max_seqs=draw.choice((None, None, max(1, users + draw.randrange(0, 5)))),
        ),
        cost=LinearCost(
            fixed_ms=draw.choice((0.5, 1.0, 4.0)),
            prefill_ms_per_token=draw.choice((0.0, 1 / 64, 1 / 4)),
            decode_ms_per_token=draw.choice((0.0, 1 / 16, 1.0)),
        ),
        itl_target_ms=draw.choice((1.0, 4.25, 50.0)),
    )


EXPERIMENTS = st.randoms(use_true_random=False).map(random_experiment)
