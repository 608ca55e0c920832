"""Disaggregation: one worker prefills, another decodes, and the KV travels between them.

Source: Zhong et al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized
Large Language Model Serving", OSDI 2024; Patel et al., "Splitwise", ISCA 2024. It is a
deployment of two workers (`s11.simulator`); this is what the prefill worker plans, which never
sees a decode.
"""

from __future__ import annotations

from s11.plan import Batch, EngineLimits, StepPlan
from s11.policies.chunked import chunked


def disaggregated(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Slice prompts into the budget of a worker that does nothing else."""
    assert not batch.decoding, "no decode runs on a prefill worker"
    return chunked(batch, limits)
