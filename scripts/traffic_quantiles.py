"""Work out s11/traffic_quantiles.json from the public traces in a folder.

    python scripts/traffic_quantiles.py ../shared/traces

The tables are facts about the traces (the lengths at 201 equally spaced shares), not the traces.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from s11.traces import read_trace

STEPS = 200
TARGET = Path(__file__).resolve().parents[1] / "s11" / "traffic_quantiles.json"
SOURCES = (
    {
        "file": "azure_conv_2023.csv",
        "name": "azure-conv-2023",
        "title": "Azure conversation",
        "source": "Azure LLM inference trace 2023, conversation (Azure/AzurePublicDataset)",
        "license": "CC-BY 4.0",
    },
    {
        "file": "mooncake_conversation_head.jsonl",
        "name": "mooncake-conversation",
        "title": "Mooncake conversation",
        "source": "Mooncake FAST'25 conversation trace, its beginning (kvcache-ai/Mooncake)",
        "license": "Apache-2.0",
    },
)


def quantiles(values: NDArray[np.int64]) -> list[int]:
    """Return the smallest value whose share reaches 0, 1/STEPS, … 1: an inverted CDF."""
    ordered = np.sort(values)
    places = [max(-(-Fraction(k, STEPS) * len(ordered) // 1) - 1, 0) for k in range(STEPS + 1)]
    return [int(ordered[int(place)]) for place in places]


def rank_correlation(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return Spearman's correlation, equal values at their mean rank."""

    def ranks(values: NDArray[np.int64]) -> NDArray[np.float64]:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        return (ends - (counts - 1) / 2)[place]

    return float(np.corrcoef(ranks(left), ranks(right))[0, 1])


def main() -> int:
    folder = Path(sys.argv[1])
    tables = []
    for about in SOURCES:
        trace = read_trace(folder / about["file"], name=about["file"])
        tables.append(
            {name: value for name, value in about.items() if name != "file"}
            | {
                "requests": len(trace),
                "rank_correlation": round(
                    rank_correlation(trace.prompt_tokens, trace.output_tokens), 4
                ),
                "prompt_tokens": quantiles(trace.prompt_tokens),
                "output_tokens": quantiles(trace.output_tokens),
            }
        )
    lines = ",\n".join(json.dumps(table) for table in tables)
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
