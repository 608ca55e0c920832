"""What an engine takes of its own, beside the GPU: scheduling, inputs, sampling, outputs.

Fitted on whole serving runs (the share of their TPOT that the kernels do not explain); see
scripts/calibrate_host.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from s11.costs.constants import document


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOverhead:
    """Time of a step in which the GPU waits.

    step_ms: of every step. sequence_ms: for each sequence in it.
    """

    step_ms: float
    sequence_ms: float


HOST_OF_POLICY = {"sglang": "sglang", "tensorrt_llm": "tensorrt-llm"}
"""By scheduler, whose host it runs on; every other runs on vLLM's."""

STANDS_IN = {"sglang": "tensorrt-llm"}
"""Whose host stands in for one that no run was measured of: both overlap it with the GPU."""


def _host(engine: str) -> HostOverhead:
    measured = document()["hosts"]
    values = measured[engine if engine in measured else STANDS_IN[engine]]
    return HostOverhead(step_ms=values["step_ms"], sequence_ms=values["sequence_ms"])


HOSTS: dict[str, HostOverhead] = {
    engine: _host(engine) for engine in ("vllm", "sglang", "tensorrt-llm")
}
