"""The registry of policies: a name, and the function that plans a step."""

from __future__ import annotations

from s11.plan import Policy
from s11.policies.chunked import chunked
from s11.policies.whole_prompt import whole_prompt

POLICIES: dict[str, Policy] = {"chunked": chunked, "whole_prompt": whole_prompt}

__all__ = ["POLICIES", "chunked", "whole_prompt"]
