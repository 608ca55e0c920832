"""Small made-up samples of each format: no server was recorded."""

from __future__ import annotations

from pathlib import Path

SAMPLES = (
    "made-up-azure.csv",
    "made-up-burstgpt.csv",
    "made-up-mooncake.jsonl",
    "made-up-bench.json",
)


def sample_path(name: str) -> Path:
    """Return where a sample lies, by its name in `SAMPLES`."""
    return Path(__file__).resolve().parent / SAMPLES[SAMPLES.index(name)]
