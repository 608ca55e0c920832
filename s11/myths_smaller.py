"""“Smaller chunks are always smoother”: the stall has a floor, and the first token pays.

No chunk makes a step shorter than the decodes alone take, with the engine's own time. Below some
size the stall stays where it is, for a step's weights are read and its tiles filled all the same,
while the prompt needs ever more steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from s11.costs import AnyCost
from s11.experiment import Experiment
from s11.metrics import measure
from s11.simulator import simulate
from s11.workload import chapter_scenario

SMALLEST_CHUNK = 16
LITTLE = 0.1  # of the stall: what is still called no gain


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTried:
    """One chunk size: the streams' longest gap, the prompt's TTFT, and in how many steps."""

    chunk_tokens: int
    longest_stall_ms: float
    ttft_ms: float
    prefill_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesTried:
    """Chunk sizes from the smallest to the whole prompt.

    floor_ms: the decodes' step without any prefill.
    enough: the largest size whose stall is at most `LITTLE` above the least of all.
    """

    prompt_tokens: int
    streaming_users: int
    floor_ms: float
    sizes: tuple[SizeTried, ...]

    def at(self, chunk_tokens: int) -> SizeTried:
        """Return a size that was tried; of one beyond the prompt, the whole prompt."""
        return next((s for s in self.sizes if s.chunk_tokens >= chunk_tokens), self.sizes[-1])

    @property
    def smoothest(self) -> SizeTried:
        """Return the size with the shortest longest stall; of several, the largest."""
        return min(self.sizes, key=lambda size: (size.longest_stall_ms, -size.chunk_tokens))

    @property
    def enough(self) -> SizeTried:
        """Return the largest size that is as smooth as any, but for `LITTLE`."""
        most_ms = (1 + LITTLE) * self.smoothest.longest_stall_ms
        return [size for size in self.sizes if size.longest_stall_ms <= most_ms][-1]


def sizes_to_try(prompt_tokens: int) -> tuple[int, ...]:
    """Return powers of two from `SMALLEST_CHUNK` on, below the prompt, and the prompt."""
    sizes, size = [], SMALLEST_CHUNK
    while size < prompt_tokens:
        sizes.append(size)
        size *= 2
    return (*sizes, prompt_tokens)


@lru_cache(maxsize=32)
def sizes_tried(cost: AnyCost, *, prompt_tokens: int, streaming_users: int) -> SizesTried:
    """Return what each chunk size gives a prompt that comes among streams.

    Raises:
        ValueError: a number out of range, or nobody streams.
    """
    if streaming_users < 1:
        raise ValueError(f"streaming_users: {streaming_users} (allowed: 1 or more)")
    scenario = chapter_scenario(prompt_tokens=prompt_tokens, streaming_users=streaming_users)
    base, tried, floor_ms = Experiment(workload=scenario, cost=cost), [], 0.0
    for size in sizes_to_try(prompt_tokens):
        result = simulate(base.with_chunk_tokens(size))
        metrics = measure(result, itl_target_ms=base.itl_target_ms)
        assert metrics.longest_stall_ms is not None
        assert metrics.ttft_ms is not None
        floor_ms = float(result.steps.duration_ms[0])
        tried.append(
            SizeTried(
                chunk_tokens=size,
                longest_stall_ms=metrics.longest_stall_ms,
                ttft_ms=metrics.ttft_ms,
                prefill_steps=int((result.steps.prefill_tokens > 0).sum()),
            )
        )
    return SizesTried(
        prompt_tokens=prompt_tokens,
        streaming_users=streaming_users,
        floor_ms=floor_ms,
        sizes=tuple(tried),
    )
