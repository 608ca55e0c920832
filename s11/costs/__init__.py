"""The registry of cost models: a name, and the frozen class that holds its coefficients."""

from __future__ import annotations

from s11.costs.breakdown import CostModel, StepCosts
from s11.costs.linear import LinearCost

COST_MODELS: dict[str, type[LinearCost]] = {"linear": LinearCost}

__all__ = ["COST_MODELS", "CostModel", "LinearCost", "StepCosts"]
