"""Loads whose requests come at equal intervals, so that a queue can be worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from s11 import Experiment
from tests.loads import load, request


def evenly(
    count: int, prompt_tokens: int = 1, *, output_tokens: int = 1, **said: Any
) -> Callable[[float], Experiment]:
    """A function of the rate: `count` equal requests, the first at 0; see `tests.loads.load`."""
    alike = [
        request(f"r{number}", prompt_tokens, output_tokens=output_tokens) for number in range(count)
    ]

    def make(rate_per_s: float) -> Experiment:
        gap_ms = 1000.0 / rate_per_s
        return load(
            *[replace(each, arrival_ms=number * gap_ms) for number, each in enumerate(alike)],
            **said,
        )

    return make
