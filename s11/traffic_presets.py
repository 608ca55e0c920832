"""Traffic to start from: the lengths of known workloads, with where they come from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from s11.arrivals import Arrivals
from s11.lengths import EmpiricalTokens, FixedTokens, Lengths, LognormalTokens
from s11.traffic import Traffic

_SARATHI = (
    "Agrawal et al., Sarathi-Serve, OSDI 2024, Table 2: median and P90 of prompts {}, of outputs "
    "{}; drawn as lognormal, prompt and output independently. As in the paper (section 5), "
    "requests of more than {:,} tokens in all are left out: here they are drawn again, which takes "
    "the drawn P90 of prompts below the paper's."
)
_RECORDED = (
    "{}, {}: quantiles of its {:,} requests. Prompt and output are drawn independently; in the "
    "trace their rank correlation is {:.2f}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficPreset:
    """The lengths of a known workload.

    name: what it is called in links and on the command line.
    title: what it is called on the page.
    source: where the numbers come from, in a sentence.
    most_total_tokens: longer requests are drawn again; None where there is no bound.
    """

    name: str
    title: str
    prompt: Lengths
    output: Lengths
    source: str
    most_total_tokens: int | None = None

    def traffic(self, *, request_count: int, arrivals: Arrivals, seed: int = 0) -> Traffic:
        """Return requests of these lengths."""
        return Traffic(
            request_count=request_count,
            arrivals=arrivals,
            prompt=self.prompt,
            output=self.output,
            seed=seed,
            most_total_tokens=self.most_total_tokens,
        )


def _recorded() -> list[TrafficPreset]:
    """Return the presets that scripts/traffic_quantiles.py worked out from public traces."""
    path = Path(__file__).resolve().parent / "traffic_quantiles.json"
    return [
        TrafficPreset(
            name=table["name"],
            title=table["title"],
            prompt=EmpiricalTokens(quantiles=tuple(table["prompt_tokens"])),
            output=EmpiricalTokens(quantiles=tuple(table["output_tokens"])),
            source=_RECORDED.format(
                table["source"], table["license"], table["requests"], table["rank_correlation"]
            ),
        )
        for table in json.loads(path.read_text(encoding="utf-8"))
    ]


TRAFFIC_PRESETS: dict[str, TrafficPreset] = {
    preset.name: preset
    for preset in (
        TrafficPreset(
            name="openchat",
            title="openchat",
            prompt=LognormalTokens(median=1_730, p90=5_696),
            output=LognormalTokens(median=415, p90=834),
            most_total_tokens=8_192,
            source=_SARATHI.format("1,730 and 5,696", "415 and 834", 8_192),
        ),
        TrafficPreset(
            name="arxiv",
            title="arxiv summarization",
            prompt=LognormalTokens(median=7_059, p90=12_985),
            output=LognormalTokens(median=208, p90=371),
            most_total_tokens=16_384,
            source=_SARATHI.format("7,059 and 12,985", "208 and 371", 16_384),
        ),
        *_recorded(),
        TrafficPreset(
            name="fixed",
            title="Fixed lengths",
            prompt=FixedTokens(tokens=1_024),
            output=FixedTokens(tokens=128),
            source="vLLM, vllm/benchmarks/datasets.py: the defaults of its random data set, "
            "prompts of 1,024 tokens and outputs of 128.",
        ),
    )
}
