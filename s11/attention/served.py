"""A request while it is being served, and what it has got in the end."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray, IntArray, checked_count, checked_members, checked_tokens
from .decoder import Decoder
from .kv_cache import KVCache


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


@dataclass
class ServedRequest:
    """A request being served: `known` is its prompt, then what it has got so far."""

    cache: KVCache
    known: list[int]
    wanted: int | None
    outputs: int = 0
    hidden: list[FloatArray] = field(default_factory=list)

    @property
    def computable(self) -> int:
        """Known tokens without keys and values; none once the last output is there."""
        return 0 if self.finished else len(self.known) - self.cache.tokens

    @property
    def finished(self) -> bool:
        """Whether the last output that it wants is there."""
        return self.outputs == self.wanted

    def generated(self, decoder: Decoder) -> GeneratedTokens:
        """Return copies of what it has got so far."""
        hidden = np.reshape(self.hidden, (self.outputs, decoder.config.hidden_size))
        return GeneratedTokens(
            tokens=np.array(self.known[len(self.known) - self.outputs :], np.int64),
            hidden=hidden.astype(np.float32),
            keys=self.cache.keys.copy(),
            values=self.cache.values.copy(),
        )


def new_requests(
    prompts: Mapping[str, ArrayLike], output_tokens: Mapping[str, int | None], decoder: Decoder
) -> dict[str, ServedRequest]:
    """Return every request by its id, nothing computed.

    Raises:
        ValueError: bad token ids; output tokens that are missing, below 1, or of no prompt.
    """
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
        requests[request_id] = ServedRequest(decoder.new_cache(), known.tolist(), wanted)
    return requests
