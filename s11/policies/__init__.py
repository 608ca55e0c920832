"""The registry of policies: a name, and the function that plans a step."""

from __future__ import annotations

from s11.plan import Policy
from s11.policies.chunked import chunked
from s11.policies.disaggregated import disaggregated
from s11.policies.prefill_first import prefill_first
from s11.policies.request_level import request_level
from s11.policies.sglang import sglang
from s11.policies.slo_adaptive import slo_adaptive
from s11.policies.tensorrt_llm import tensorrt_llm
from s11.policies.vllm_v1 import vllm_v1
from s11.policies.whole_prompt import whole_prompt

POLICIES: dict[str, Policy] = {
    "chunked": chunked,
    "whole_prompt": whole_prompt,
    "request_level": request_level,
    "prefill_first": prefill_first,
    "vllm_v1": vllm_v1,
    "sglang": sglang,
    "tensorrt_llm": tensorrt_llm,
    "slo_adaptive": slo_adaptive,
    "disaggregated": disaggregated,
}

CHUNKING = ("chunked", "vllm_v1", "sglang", "tensorrt_llm", "slo_adaptive", "disaggregated")
"""The policies that cut prompts; the others take them whole."""

DISAGGREGATED = "disaggregated"
"""The policy that is a deployment of two workers."""

__all__ = [
    "CHUNKING",
    "DISAGGREGATED",
    "POLICIES",
    "chunked",
    "disaggregated",
    "prefill_first",
    "request_level",
    "sglang",
    "slo_adaptive",
    "tensorrt_llm",
    "vllm_v1",
    "whole_prompt",
]
