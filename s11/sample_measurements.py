"""Made-up samples in the formats of a user's own measurements: no machine was measured.

The steps follow a straight line, bent by what a chunk attends to within itself, with noise and
one row that stands out. The benchmark is a simulated schedule with noise and rare hiccups.
"""

from __future__ import annotations

from pathlib import Path

STEPS_NAME = "made-up-steps.csv"
BENCHMARK_NAME = "made-up-benchmark.json"

_HERE = Path(__file__).resolve().parent


def sample_steps() -> str:
    """Return made-up measured steps, the text of a CSV."""
    return (_HERE / "sample_steps.csv").read_text(encoding="utf-8")


def sample_benchmark() -> str:
    """Return a made-up benchmark, the text of a JSON as `vllm bench serve` saves it."""
    return (_HERE / "sample_benchmark.json").read_text(encoding="utf-8")
