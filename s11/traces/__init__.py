"""Public request traces: Azure, BurstGPT, Mooncake, and results of `vllm bench serve`."""

from __future__ import annotations

from s11.traces.hash_ids import HashIds
from s11.traces.reading import FORMATS, read_trace
from s11.traces.samples import SAMPLES, sample_path
from s11.traces.trace import Trace

__all__ = ["FORMATS", "SAMPLES", "HashIds", "Trace", "read_trace", "sample_path"]
