"""Small loads that tests share: short names for what they build, and random ones."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from s11 import EngineLimits, Experiment, LinearCost, Request, Workload, simulate
from s11.costs import AnyCost, FittedCost
from s11.plan import HandOver
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
    cost: AnyCost = CLOCK,
    target_ms: float = 50.0,
    **limits: Any,
) -> Experiment:
    """An experiment of a few requests; without more said, on the one-millisecond clock.

    What is said of other fields of EngineLimits goes there.
    """
    return Experiment(
        workload=Workload(
            requests=requests, streaming_users=users, lead_in_steps=lead_in, tail_steps=tail
        ),
        policy=policy,
        limits=EngineLimits(token_budget=budget, chunk_tokens=chunk, max_seqs=seats, **limits),
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


ONE_WORKER = (
    "whole_prompt",
    "chunked",
    "vllm_v1",
    "prefill_first",
    "request_level",
    "sglang",
    "tensorrt_llm",
    "slo_adaptive",
)


def random_kv_experiment(draw: random.Random) -> Experiment:
    """A load of any policy of one worker whose KV blocks are few, or shared, or neither.

    Its times are short binary fractions, as those of `random_experiment`.
    """
    caching = draw.random() < 0.5
    block_size = draw.randrange(1, 9)
    requests = _random_requests(draw, block_size)
    # Two thirds of the pools hold little more than the longest request needs, or less.
    most = max([r.prompt_tokens + r.output_tokens for r in requests], default=1)
    blocks = max(1, (most + draw.choice((-3, 0, 0, 3, 10))) // block_size)
    limits = _random_limits(draw, block_size) | {
        "kv_blocks": draw.choice((None, blocks, blocks, blocks, blocks, blocks * 3)),
        "max_seqs": draw.choice((None, None, None, draw.randrange(2, 6))),
        "prefix_caching": caching,
        "reserve_full_prompt": draw.random() < 0.3,
    }
    return _random_load(draw, draw.choice(ONE_WORKER), requests, limits)


def random_policy_experiment(draw: random.Random) -> Experiment:
    """A load of any policy, with KV blocks to spare."""
    block_size = draw.randrange(1, 9)
    requests = _random_requests(draw, block_size)
    policy = draw.choice((*ONE_WORKER, "disaggregated"))
    return _random_load(draw, policy, requests, _random_limits(draw, block_size))


def _random_requests(draw: random.Random, block_size: int) -> list[Request]:
    """Up to nine requests; some share a beginning, some go on where another ended.

    Prompts as short as these are one hash block: the same id is the same text.
    """
    requests: list[Request] = []
    longest, spread = draw.choice((8, 20, 120)), draw.choice((1, 20, 200))
    outputs = draw.choice((1, 4, 15, 40, 40))
    for number in range(draw.randrange(0, 10)):
        prompt_tokens = draw.randrange(1, longest + 1)
        group, shared, continues = None, 0, None
        hash_ids: tuple[int, ...] = ()
        kind = draw.random()
        if kind < 0.4:
            group = draw.choice("AAB")
            shared = draw.choice((prompt_tokens, min(prompt_tokens, block_size * 2)))
            shared = draw.choice((shared, draw.randrange(1, prompt_tokens + 1)))
        elif kind < 0.6 and requests:
            before = draw.choice(requests)
            least = before.prompt_tokens + before.output_tokens
            if least <= 120:
                continues = before.request_id
                prompt_tokens = min(120, least + draw.randrange(0, 20))
        elif kind < 0.75:
            hash_ids = (draw.randrange(2),)
        requests.append(
            Request(
                request_id=f"r{number}",
                prompt_tokens=prompt_tokens,
                output_tokens=draw.randrange(1, outputs + 1),
                arrival_ms=draw.choice((0.0, draw.randrange(0, spread) / 4)),
                shared_group=group,
                shared_tokens=shared,
                continues=continues,
                hash_ids=hash_ids,
            )
        )
    return requests


def random_hash_experiment(draw: random.Random) -> Experiment:
    """A load of prompts of up to five hash blocks that share a tree of beginnings.

    With few ids, many begin alike, and an id comes again at another place. The sizes of KV
    blocks are divisors of 512, multiples, and neither.
    """
    block_size = draw.choice((16, 37, 64, 100, 128, 200, 256, 512, 700))
    ids = draw.choice((1, 2, 2, 3))
    requests: list[Request] = []
    for number in range(draw.randrange(1, 10)):
        tokens = draw.choice((draw.randrange(1, 2_560), 512 * draw.randrange(1, 6)))
        before = draw.choice(requests) if requests else None
        continues = None
        hash_ids = tuple(draw.randrange(ids) for _ in range(-(-tokens // 512)))
        kind = draw.random()
        if before is not None and kind < 0.3:  # the same text, cut
            tokens = draw.randrange(1, before.prompt_tokens + 1)
            hash_ids = before.hash_ids[: -(-tokens // 512)]
        elif before is not None and kind < 0.45 and before.prompt_tokens < 2_560:
            tokens = before.prompt_tokens + before.output_tokens + draw.randrange(600)
            continues, hash_ids = before.request_id, ()
        elif kind < 0.5:
            hash_ids = ()
        requests.append(
            Request(
                request_id=f"r{number}",
                prompt_tokens=tokens,
                output_tokens=draw.randrange(1, draw.choice((2, 40))),
                arrival_ms=draw.choice((0.0, draw.randrange(0, 200) / 4)),
                continues=continues,
                hash_ids=hash_ids,
            )
        )
    most = max(request.prompt_tokens + request.output_tokens for request in requests)
    blocks = -(-most // block_size)
    limits = {
        "token_budget": draw.choice((None, 512, draw.randrange(64, 2_000))),
        "chunk_tokens": draw.choice((None, 512, draw.randrange(64, 1_000))),
        "max_seqs": draw.choice((None, None, draw.randrange(2, 6))),
        "chunking": draw.random() < 0.75,
        "mixed": draw.random() < 0.5,
        "block_size": block_size,
        "kv_blocks": draw.choice((None, blocks, blocks + 3, blocks * 2)),
        "prefix_caching": True,
        "reserve_full_prompt": draw.random() < 0.3,
        "align_first_chunk": draw.random() < 0.2,
    }
    return _random_load(draw, draw.choice(ONE_WORKER), requests, limits)


def _random_limits(draw: random.Random, block_size: int) -> dict[str, Any]:
    return {
        "token_budget": draw.choice((None, draw.randrange(1, 20), draw.randrange(20, 130))),
        "chunk_tokens": draw.choice((None, draw.randrange(1, 12), draw.randrange(4, 60))),
        "max_seqs": draw.choice((None, None, draw.randrange(1, 6))),
        "chunking": draw.random() < 0.75,
        "mixed": draw.random() < 0.5,
        "prefill_interval": draw.choice((1, 1, 2, 3, 4)),
        "block_size": block_size,
        "max_model_len": draw.choice((None, None, None, draw.randrange(10, 120))),
        "align_first_chunk": draw.random() < 0.2,
    }


def _sent_by_clients(draw: random.Random, requests: list[Request]) -> list[Request]:
    """The same requests; many are sent when one before them ends."""
    return [
        replace(request, after=draw.choice(requests[:number]).request_id)
        if number and draw.random() < 0.6
        else request
        for number, request in enumerate(requests)
    ]


def _random_cost(draw: random.Random) -> LinearCost | FittedCost:
    """A cost in short binary fractions; of every other, cached tokens count too."""
    coefficients = {
        "fixed_ms": draw.choice((0.5, 1.0, 4.0)),
        "prefill_ms_per_token": draw.choice((0.0, 1 / 64, 1 / 4)),
        "decode_ms_per_token": draw.choice((0.0, 1 / 16, 1.0)),
    }
    if draw.random() < 0.5:
        return LinearCost(**coefficients)
    return FittedCost(**coefficients, context_ms_per_token=draw.choice((1 / 4096, 1 / 64)))


def _random_load(
    draw: random.Random, policy: str, requests: list[Request], limits: dict[str, Any]
) -> Experiment:
    users = draw.choice((0, 0, 0, 1, 2, 3))
    for name in ("token_budget", "max_seqs"):
        if limits[name] is not None:
            limits[name] = max(limits[name] + draw.choice((0, users)), users, 1)
    if policy == "slo_adaptive":
        limits["chunking"] = True
    if policy != "chunked":  # vLLM V0's, whose stand-in it is
        limits["align_first_chunk"] = False
    if policy != "disaggregated" and draw.random() < 0.3:
        requests = _sent_by_clients(draw, requests)
    return Experiment(
        workload=Workload(
            requests=tuple(requests),
            streaming_users=users,
            lead_in_steps=draw.randrange(0, 3),
            tail_steps=draw.randrange(0, 3),
            user_context_tokens=draw.choice((0, 7, 1024)),
        ),
        policy=policy,
        limits=EngineLimits(**limits),
        cost=_random_cost(draw),
        itl_target_ms=draw.choice((1.0, 2.0, 4.25, 8.0, 50.0)),
        hand_over=HandOver(
            kv_bytes_per_token=1024,
            link_bytes_per_s=1000.0 * 1024 * draw.choice((1, 4, 64)),
            link_latency_ms=draw.choice((0.0, 0.25, 3.0)),
        ),
    )
