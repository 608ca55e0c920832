"""Random schedules: what any scheduler might do, within what a request can compute."""

from dataclasses import dataclass

import numpy as np

from s11.attention import Decoder


@dataclass(frozen=True, eq=False)
class Served:
    """The arguments of `execute`, and how many tokens of each request the schedule computes."""

    schedule: list[dict[str, int]]
    prompts: dict[str, np.ndarray]
    output_tokens: dict[str, int | None]
    already_prefilled: frozenset[str]
    computed: dict[str, int]


def random_schedule(
    seed: int,
    decoder: Decoder,
    *,
    most_requests: int = 4,
    longest_prompt: int = 140,
    steps: int = 14,
) -> Served:
    """Draw prompts, then per step a subset of requests in random order with random amounts."""
    rng = np.random.default_rng(seed)
    names = [f"r{i}" for i in range(int(rng.integers(1, most_requests + 1)))]
    prompts, output_tokens, left, computed = {}, {}, {}, {}
    prefilled = frozenset(name for name in names if rng.random() < 0.25)
    for name in names:
        length = int(rng.integers(1, longest_prompt + 1))
        prompts[name] = rng.integers(decoder.config.vocab_size, size=length)
        output_tokens[name] = None if rng.random() < 0.3 else int(rng.integers(1, 6))
        computed[name] = length if name in prefilled else 0
        left[name] = length - computed[name]
    schedule = []
    for _ in range(int(rng.integers(1, steps + 1))):
        scheduled = {}
        for name in rng.permutation(names).tolist():
            wanted = output_tokens[name]
            decodes = computed[name] - len(prompts[name])
            finished = wanted is not None and decodes >= wanted - 1
            if rng.random() < 0.25 or (left[name] == 0 and finished):
                continue
            most = left[name] or 1
            scheduled[name] = most if rng.random() < 0.3 else int(rng.integers(1, most + 1))
            computed[name] += scheduled[name]
            left[name] = max(0, left[name] - scheduled[name])
        schedule.append(scheduled)
    return Served(schedule, prompts, output_tokens, prefilled, computed)
