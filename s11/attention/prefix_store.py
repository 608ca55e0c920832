"""What requests have computed, by content, and what of it a prefix-cache hit takes over."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from .kv_cache import KVCache, SharedPrefix
from .served import ServedRequest


@dataclass(frozen=True, eq=False)
class Prefix:
    """The first `tokens` of the token ids `known`, whose keys and values a cache holds."""

    cache: KVCache
    known: Sequence[int]  # only ever appended to
    tokens: int

    def begins_with(self, known: Sequence[int], tokens: int) -> bool:
        """Whether the first `tokens` of `known` are among its own."""
        return self.tokens >= tokens and self.known[:tokens] == known[:tokens]

    def common_tokens(self, known: Sequence[int]) -> int:
        """Count the leading tokens that it shares with `known`."""
        pairs = zip(self.known[: self.tokens], known, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


@dataclass(frozen=True, eq=False)
class Part:
    """What one step does of one request: take over `hit` tokens, then compute `tokens`."""

    request: ServedRequest
    tokens: int
    hit: int = 0
    hit_name: str = ""  # of the argument that asks for the hit

    def after_step(self) -> Prefix:
        """Return what the request holds after the step."""
        held = self.request.cache.tokens + self.hit + self.tokens
        return Prefix(self.request.cache, self.request.known, held)


class PrefixStore:
    """Keys and values that preempted requests left behind. None is ever evicted."""

    def __init__(self) -> None:
        self._retained: list[Prefix] = []

    def retain(self, request: ServedRequest) -> None:
        """Keep what a request has computed, where no more of the same is kept already."""
        left = Prefix(request.cache, request.known, request.cache.tokens)
        if any(kept.begins_with(left.known, left.tokens) for kept in self._retained):
            return
        others = [kept for kept in self._retained if not left.begins_with(kept.known, kept.tokens)]
        self._retained = [*others, left]

    def share(
        self, batch: Sequence[Part], requests: Iterable[ServedRequest]
    ) -> tuple[SharedPrefix, ...]:
        """Find every hit of a step a source, and put them in an order that can be copied.

        A source is a cache that holds the same tokens before the step or after it. One that
        has a hit itself counts once that hit has its source: hits cannot feed on each other.

        Args:
            batch: the step, before it runs.
            requests: all, in the batch or not.

        Raises:
            ValueError: a hit on tokens that no request has computed.
        """
        waiting = [part for part in batch if part.hit]
        if not waiting:
            return ()
        sources = [*self._retained]
        sources += [Prefix(each.cache, each.known, each.cache.tokens) for each in requests]
        sources += [part.after_step() for part in batch if not part.hit]
        shared: list[SharedPrefix] = []
        while waiting:
            unsourced = []
            for part in waiting:
                target, known = part.request.cache, part.request.known
                source = next((each for each in sources if each.begins_with(known, part.hit)), None)
                if source is None:
                    unsourced.append(part)
                else:
                    shared.append(SharedPrefix(source.cache, target, part.hit))
                    sources.append(part.after_step())
            if len(unsourced) == len(waiting):
                part = unsourced[0]
                computed = max(each.common_tokens(part.request.known) for each in sources)
                raise ValueError(
                    f"{part.hit_name}: got {part.hit}; allowed: an integer in 0..{computed}, "
                    "the leading tokens that some request has computed"
                )
            waiting = unsourced
        return tuple(shared)
