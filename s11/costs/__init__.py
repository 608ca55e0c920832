"""The registry of cost models: a name, and the frozen class that holds its coefficients."""

from __future__ import annotations

from s11.costs.breakdown import CostModel, Slice, StepCosts, StepWork
from s11.costs.linear import LinearCost

AnyCost = LinearCost

COST_MODELS: dict[str, type[AnyCost]] = {cost.name: cost for cost in (LinearCost,)}

__all__ = ["COST_MODELS", "AnyCost", "CostModel", "LinearCost", "Slice", "StepCosts", "StepWork"]
