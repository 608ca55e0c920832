"""Run a simulated schedule for real: one forward pass per step, over all requests in it."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray, IntArray, checked_count, checked_members, checked_tokens
from .decoder import Decoder
from .faults import Fault, checked_faults
from .kv_cache import KVCache
from .ragged import Slice, forward, greedy_tokens


@dataclass(frozen=True, eq=False)
class GeneratedTokens:
    """What one request has got: its tokens, the states that chose them, and its KV cache."""

    tokens: IntArray  # (outputs,)
    hidden: FloatArray  # (outputs, d), the final hidden state that chose each token
    keys: FloatArray  # (l, p, k, e), of the computed tokens
    values: FloatArray  # (l, p, k, e)

    @property
    def computed_tokens(self) -> int:
        """Tokens whose keys and values are in the cache."""
        return int(self.keys.shape[1])


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
    request = _Request(cache=decoder.new_cache(), known=known.tolist(), wanted=output_tokens)
    while request.computable:
        _run_step([(request, request.computable)], decoder=decoder, faults=frozenset())
    return request.generated(decoder)


def execute(
    schedule: Sequence[Mapping[str, int]],
    prompts: Mapping[str, ArrayLike],
    *,
    decoder: Decoder,
    output_tokens: Mapping[str, int | None],
    already_prefilled: Set[str] = frozenset(),
    faults: Set[Fault] = frozenset(),
) -> dict[str, GeneratedTokens]:
    """Run a schedule on the decoder in aligned tiles, and return what every request got.

    The step that computes the last token of a prompt also yields the first output token; a
    request with n outputs has prompt + n - 1 tokens to compute. A schedule may end before its
    requests do. Cost: per step, 64 rows for each decode and for each tile that a chunk touches.

    Args:
        schedule: per step, the tokens scheduled for each request, in the order of the batch.
        prompts: (p,) token ids of each request.
        decoder: the weights.
        output_tokens: tokens that each request wants; None: as many as the schedule gives.
        already_prefilled: requests whose whole prompt, with the first token, came before step 0.
        faults: bugs to switch on.

    Raises:
        ValueError: an unknown or missing request, bad token ids, or a step that gives a request
            no token, more than it can compute in that step, or any after its last.
    """
    faults = checked_faults(faults)
    requests = _new_requests(prompts, output_tokens, decoder)
    for request_id in checked_members("already_prefilled", already_prefilled, known=prompts):
        request = requests[request_id]
        _run_step([(request, request.computable)], decoder=decoder, faults=faults)
    for step, scheduled in enumerate(schedule):
        checked_members(f"schedule[{step}]", scheduled, known=prompts)
        batch = []
        for request_id, tokens in scheduled.items():
            request = requests[request_id]
            name = f"schedule[{step}][{request_id!r}]"
            if not request.computable:
                raise ValueError(f"{name}: got {tokens}; allowed: none, the request has finished")
            batch.append((request, checked_count(name, tokens, high=request.computable)))
        if batch:
            _run_step(batch, decoder=decoder, faults=faults)
    return {request_id: request.generated(decoder) for request_id, request in requests.items()}


@dataclass
class _Request:
    """A request being served: `known` is its prompt, then what it has got so far."""

    cache: KVCache
    known: list[int]
    wanted: int | None
    outputs: int = 0
    hidden: list[FloatArray] = field(default_factory=list)

    @property
    def computable(self) -> int:
        """Known tokens without keys and values; none once the last output is there."""
        if self.outputs == self.wanted:
            return 0
        return len(self.known) - self.cache.tokens

    def generated(self, decoder: Decoder) -> GeneratedTokens:
        hidden = np.reshape(self.hidden, (self.outputs, decoder.config.hidden_size))
        return GeneratedTokens(
            tokens=np.array(self.known[len(self.known) - self.outputs :], np.int64),
            hidden=hidden.astype(np.float32),
            keys=self.cache.keys.copy(),
            values=self.cache.values.copy(),
        )


def _new_requests(
    prompts: Mapping[str, ArrayLike], output_tokens: Mapping[str, int | None], decoder: Decoder
) -> dict[str, _Request]:
    checked_members("output_tokens", output_tokens, known=prompts)
    requests = {}
    for request_id, prompt in prompts.items():
        if request_id not in output_tokens:
            raise ValueError(f"output_tokens[{request_id!r}]: missing; allowed: 1 or more, or None")
        wanted = output_tokens[request_id]
        if wanted is not None:
            wanted = checked_count(f"output_tokens[{request_id!r}]", wanted)
        known = checked_tokens(
            f"prompts[{request_id!r}]", prompt, vocab_size=decoder.config.vocab_size
        )
        requests[request_id] = _Request(decoder.new_cache(), known.tolist(), wanted)
    return requests


def _run_step(
    batch: Sequence[tuple[_Request, int]], *, decoder: Decoder, faults: Set[Fault]
) -> None:
    slices = []
    for request, tokens in batch:
        start = request.cache.tokens
        slices.append(Slice(request.cache, np.array(request.known[start : start + tokens])))
    last_hidden = forward(slices, decoder=decoder, tiled=True, faults=faults)  # (s, d)
    next_tokens = greedy_tokens(last_hidden, decoder=decoder)  # (s,)
    for (request, _), hidden, token in zip(batch, last_hidden, next_tokens, strict=True):
        if request.cache.tokens == len(request.known):
            request.known.append(int(token))
            request.hidden.append(hidden)
            request.outputs += 1
