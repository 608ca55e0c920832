"""Run a simulated schedule for real: one forward pass per step, over all requests in it."""

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from .arrays import checked_count, checked_members, checked_tokens
from .decoder import Decoder
from .faults import Fault, checked_faults
from .kv_cache import SharedPrefix
from .prefix_store import Part, PrefixStore
from .ragged import Slice, forward, greedy_tokens
from .served import GeneratedTokens, ServedRequest, new_requests


def generate(prompt_tokens: ArrayLike, output_tokens: int, *, decoder: Decoder) -> GeneratedTokens:
    """Serve one request alone: its whole prompt in one pass, then one greedy token per pass.

    Args:
        prompt_tokens: (p,) token ids.
        output_tokens: tokens to generate; n of them leave prompt + n - 1 computed tokens.
        decoder: the weights.

    Raises:
        ValueError: bad token ids, or output_tokens below 1.
    """
    known = checked_tokens("prompt_tokens", prompt_tokens, vocab_size=decoder.config.vocab_size)
    output_tokens = checked_count("output_tokens", output_tokens)
    request = ServedRequest(cache=decoder.new_cache(), known=known.tolist(), wanted=output_tokens)
    while request.computable:
        _run_step([Part(request, request.computable)], decoder=decoder, faults=frozenset())
    return request.generated(decoder)


def execute(
    schedule: Sequence[Mapping[str, int]],
    prompts: Mapping[str, ArrayLike],
    *,
    decoder: Decoder,
    output_tokens: Mapping[str, int | None],
    already_prefilled: Set[str] = frozenset(),
    preempted: Mapping[int, Sequence[str]] = MappingProxyType({}),
    cached: Mapping[int, Mapping[str, int]] = MappingProxyType({}),
    faults: Set[Fault] = frozenset(),
) -> dict[str, GeneratedTokens]:
    """Run a schedule on the decoder in aligned tiles, and return what every request got.

    The step that computes the last token of a prompt also yields the first output token; a
    request with n outputs has prompt + n - 1 tokens to compute. A schedule may end before its
    requests do. Cost: per step, 64 rows for each decode and for each tile that a chunk touches.

    A preempted request keeps its outputs and has prompt + outputs tokens to compute again; the
    last of them yields its next output. Keys and values once computed stay there for hits,
    whatever became of their request: which of them are evicted is for the scheduler to know.

    Args:
        schedule: per step, the tokens computed for each request, in the order of the batch;
            those that come from the prefix cache are not among them.
        prompts: (p,) token ids of each request.
        decoder: the weights.
        output_tokens: tokens that each request wants; None: as many as the schedule gives.
        already_prefilled: requests whose whole prompt, with the first token, came before step 0.
        preempted: by step, the requests that lose their KV cache just before it;
            `len(schedule)`: after the last step.
        cached: by step, for requests that are admitted in it, how many of their leading tokens
            come from the prefix cache: copied from a request that has computed the same tokens
            before, or does in this step.
        faults: bugs to switch on.

    Raises:
        ValueError: an unknown or missing request, bad token ids, or a step that gives a request
            no token, more than it can compute in that step, or any after its last; a step that
            is not in the schedule; a preempted request with nothing to lose; cached tokens of a
            request that is not being admitted, that leave it nothing to compute, or that no
            request has computed.
    """
    faults = checked_faults(faults)
    requests = new_requests(prompts, output_tokens, decoder)
    for request_id in checked_members("already_prefilled", already_prefilled, known=prompts):
        request = requests[request_id]
        _run_step([Part(request, request.computable)], decoder=decoder, faults=faults)
    for step in preempted:
        checked_count("preempted", step, low=0, high=len(schedule))
    for step in cached:
        checked_count("cached", step, low=0, high=len(schedule) - 1)
    store = PrefixStore()
    for step in range(len(schedule) + 1):
        for request in _checked_preempted(step, preempted.get(step, ()), requests):
            store.retain(request)
            request.cache = decoder.new_cache()
        if step < len(schedule):
            batch = _checked_batch(step, schedule[step], cached.get(step, {}), requests)
            shared = store.share(batch, requests.values())
            if batch:
                _run_step(batch, decoder=decoder, shared=shared, faults=faults)
    return {request_id: request.generated(decoder) for request_id, request in requests.items()}


def _checked_preempted(
    step: int, request_ids: Sequence[str], requests: Mapping[str, ServedRequest]
) -> list[ServedRequest]:
    name = f"preempted[{step}]"
    if isinstance(request_ids, str):
        raise ValueError(f"{name}: got {request_ids!r}; allowed: a sequence of request ids")
    if len(checked_members(name, request_ids, known=requests)) < len(request_ids):
        raise ValueError(f"{name}: got {list(request_ids)}; allowed: every request once")
    for request_id in request_ids:
        if requests[request_id].finished or not requests[request_id].cache.tokens:
            raise ValueError(
                f"{name}: got {request_id!r}; "
                "allowed: requests that hold computed tokens and have not finished"
            )
    return [requests[request_id] for request_id in request_ids]


def _checked_batch(
    step: int,
    scheduled: Mapping[str, int],
    hits: Mapping[str, int],
    requests: Mapping[str, ServedRequest],
) -> list[Part]:
    checked_members(f"schedule[{step}]", scheduled, known=requests)
    checked_members(f"cached[{step}]", hits, known=scheduled)
    batch = []
    for request_id, tokens in scheduled.items():
        request = requests[request_id]
        name = f"schedule[{step}][{request_id!r}]"
        if request.finished:
            raise ValueError(f"{name}: got {tokens}; allowed: none, the request has finished")
        hit, hit_name = 0, f"cached[{step}][{request_id!r}]"
        if request_id in hits:
            hit = checked_count(hit_name, hits[request_id], low=0, high=len(request.known) - 1)
            if held := request.cache.tokens:
                raise ValueError(
                    f"{hit_name}: got {hit}; allowed: none, the request holds {held} tokens"
                )
        tokens = checked_count(name, tokens, high=request.computable - hit)
        batch.append(Part(request, tokens, hit=hit, hit_name=hit_name))
    return batch


def _run_step(
    batch: Sequence[Part],
    *,
    decoder: Decoder,
    faults: Set[Fault],
    shared: Sequence[SharedPrefix] = (),
) -> None:
    slices = []
    for part in batch:
        start = part.request.cache.tokens + part.hit
        tokens = part.request.known[start : start + part.tokens]
        slices.append(Slice(part.request.cache, np.array(tokens)))
    last_hidden = forward(
        slices, decoder=decoder, tiled=True, shared=shared, faults=faults
    )  # (s, d)
    next_tokens = greedy_tokens(last_hidden, decoder=decoder)  # (s,)
    for part, hidden, token in zip(batch, last_hidden, next_tokens, strict=True):
        request = part.request
        if request.cache.tokens == len(request.known):
            request.known.append(int(token))
            request.hidden.append(hidden)
            request.outputs += 1
