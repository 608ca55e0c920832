"""The registry of cost models: a name, and the frozen class that holds its coefficients."""

from __future__ import annotations

from s11.costs.breakdown import CostModel, Slice, StepCosts, StepWork
from s11.costs.fitted import FittedCost
from s11.costs.linear import LinearCost
from s11.costs.roofline import RooflineCost

AnyCost = LinearCost | RooflineCost | FittedCost

COST_MODELS: dict[str, type[LinearCost] | type[RooflineCost] | type[FittedCost]] = {
    LinearCost.name: LinearCost,
    RooflineCost.name: RooflineCost,
    FittedCost.name: FittedCost,
}

__all__ = [
    "COST_MODELS",
    "AnyCost",
    "CostModel",
    "FittedCost",
    "LinearCost",
    "RooflineCost",
    "Slice",
    "StepCosts",
    "StepWork",
]
