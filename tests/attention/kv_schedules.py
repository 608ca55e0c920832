"""Random schedules with preemptions and prefix-cache hits, all within what execution allows."""

from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from s11.attention import Decoder, generate, sample_prompt

MOST_OUTPUTS = 6


@dataclass(frozen=True, eq=False)
class KVServed:
    """The arguments of `execute`, what every request must end with, and what was drawn."""

    arguments: dict[str, Any]
    computed: dict[str, int]
    outputs: dict[str, int]
    kinds: Counter[str]


def assert_all_identical(comparisons):
    for name, comparison in comparisons.items():
        assert comparison.identical, (name, comparison)


def prompt_of(tokens, decoder, seed=0):
    return sample_prompt(tokens, decoder=decoder, seed=seed).tolist()


def common(left: list[int], right: list[int]) -> int:
    pairs = zip(left, right, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def longest_common(known: list[int], contents: list[list[int]]) -> int:
    return max((common(known, content) for content in contents), default=0)


def random_prompts(rng: np.random.Generator, decoder: Decoder, *, longest: int):
    """Draw prompts, many of which begin as an earlier one does, or as its outputs go on."""
    prompts: dict[str, list[int]] = {}
    everything: dict[str, list[int]] = {}  # prompt, then the outputs that it gets alone
    for index in range(int(rng.integers(2, 6))):
        fresh = rng.integers(decoder.config.vocab_size, size=int(rng.integers(1, longest)))
        prompt = fresh.tolist()
        if everything and rng.random() < 0.8:
            earlier = everything[str(rng.choice(list(everything)))]
            head = len(earlier) if rng.random() < 0.4 else int(rng.integers(1, len(earlier) + 1))
            prompt = earlier[:head] + prompt[: int(rng.integers(0, 20))]
        alone = generate(prompt, MOST_OUTPUTS, decoder=decoder)
        prompts[f"r{index}"], everything[f"r{index}"] = prompt, prompt + alone.tokens.tolist()
    return prompts, everything


def random_kv_schedule(
    seed: int, decoder: Decoder, *, longest_prompt: int = 90, steps: int = 16
) -> KVServed:
    rng = np.random.default_rng(seed)
    block_tokens = int(rng.choice([1, 4, 16]))
    prompts, everything = random_prompts(rng, decoder, longest=longest_prompt)
    wanted = {name: int(rng.integers(1, MOST_OUTPUTS + 1)) for name in prompts}
    computed, outputs = dict.fromkeys(prompts, 0), dict.fromkeys(prompts, 0)
    losses: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    contents: list[list[int]] = []  # all that was ever computed
    schedule: list[dict[str, int]] = []
    preempted: dict[int, list[str]] = {}
    cached: dict[int, dict[str, int]] = {}

    def known(name: str) -> list[int]:
        return everything[name][: len(prompts[name]) + outputs[name]]

    def preempt(step: int) -> None:
        for name in rng.permutation(list(prompts)).tolist():
            if computed[name] and outputs[name] < wanted[name] and rng.random() < 0.15:
                preempted.setdefault(step, []).append(name)
                kinds["preempted decode" if outputs[name] else "preempted prefill"] += 1
                losses[name] += 1
                kinds["preempted twice"] += losses[name] == 2
                computed[name] = 0

    for step in range(int(rng.integers(1, steps + 1))):
        preempt(step)
        before, plain = list(contents), list(contents)
        held = [known(name)[: computed[name]] for name in prompts]
        scheduled: dict[str, int] = {}
        for name in rng.permutation(list(prompts)).tolist():
            if rng.random() < 0.3 or outputs[name] == wanted[name]:
                continue
            left, hit = len(known(name)) - computed[name], 0
            if computed[name] == 0:
                most = min(longest_common(known(name), contents), left - 1) // block_tokens
                hit = block_tokens * (most if rng.random() < 0.7 else int(rng.integers(most + 1)))
                if hit or rng.random() < 0.5:
                    cached.setdefault(step, {})[name] = hit
                kinds["hit"] += hit > 0
                kinds["same step"] += hit > longest_common(known(name), before)
                kinds["chain"] += hit > longest_common(known(name), plain)
                kinds["own outputs"] += hit > len(prompts[name])
                kinds["left by the preempted"] += longest_common(
                    known(name), held
                ) < hit and hit <= longest_common(known(name), before)
            left -= hit
            tokens = left if rng.random() < 0.5 else int(rng.integers(1, left + 1))
            scheduled[name] = tokens
            computed[name] += hit + tokens
            contents.append(known(name)[: computed[name]])
            if not hit:
                plain.append(contents[-1])
        for name in scheduled:
            outputs[name] += computed[name] == len(known(name))
        order = list(scheduled) if rng.random() < 0.5 else rng.permutation(list(scheduled)).tolist()
        schedule.append({name: scheduled[name] for name in order})
    preempt(len(schedule))
    arguments = {
        "schedule": schedule,
        "prompts": prompts,
        "output_tokens": wanted,
        "preempted": preempted,
        "cached": cached,
    }
    return KVServed(arguments, computed, outputs, kinds)
