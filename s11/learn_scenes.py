"""The tour: its scenes in order. Other pages link to them as `learn?scene=N`, from 1."""

from __future__ import annotations

from s11.learn_budget import STALL_FREE
from s11.learn_choice import CHOOSE
from s11.learn_cost import COST
from s11.learn_engines import PRODUCTION
from s11.learn_freeze import FREEZE
from s11.learn_keys import DIVIDE
from s11.learn_mask import LOOK
from s11.learn_next import NEXT
from s11.learn_orders import REORDER
from s11.learn_positions import PLACE
from s11.learn_ride import MIX
from s11.learn_scene import Scene

SCENES: tuple[Scene, ...] = (
    FREEZE,
    REORDER,
    DIVIDE,
    STALL_FREE,
    COST,
    MIX,
    CHOOSE,
    LOOK,
    PLACE,
    PRODUCTION,
    NEXT,
)
