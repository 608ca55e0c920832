"""Links from an engine's flag to the page where our knob of it can be seen at work."""

from __future__ import annotations

from urllib.parse import urlencode

from s11.engine_knobs import ENGINE_OF_POLICY, EngineKnob
from s11.entries import SHORT_KNOBS
from s11.plan import EngineLimits
from s11.presets import TITLES
from s11.ui.compare_link import value_text
from s11.ui.compare_requests import FIELD, ROW
from s11.ui.simulator_state import DEFAULTS, MAX_PROMPT

IN_SIMULATOR = {
    "token_budget": "budget",
    "chunk_tokens": "chunk",
    "max_seqs": "seats",
    "chunking": "chunking",
    "mixed": "mixed",
    "prefill_interval": "interval",
}
"""By knob, the simulator's parameter."""

IN_COMPARE = {
    "block_size": "shared-prefix",
    "kv_blocks": "kv-pressure",
    "prefix_caching": "shared-prefix",
    "reserve_full_prompt": "kv-pressure",
}
"""By knob, the scene of the compare page that shows it."""

EXAMPLES: dict[str, int] = {
    "token_budget": 2_048,
    "chunk_tokens": 512,
    "max_seqs": 32,
    "prefill_interval": 4,
    "block_size": 128,
    "kv_blocks": 320,
}
"""What a link sets where the engine has no number as it comes, or ours is the same."""


def set_value(row: EngineKnob) -> int | bool | None:
    """Return what a row's link sets: the default where it is a number, else a value that shows.

    A switch is turned to the side on which it is not as it comes.
    """
    if row.knob is None or row.knob == "max_model_len":
        return None
    first = row.values[0] if row.values else None
    if isinstance(first, bool):
        return not first
    ours = getattr(EngineLimits(), row.knob)
    if row.knob in IN_SIMULATOR:
        ours = DEFAULTS[IN_SIMULATOR[row.knob]]
    return EXAMPLES[row.knob] if first in (None, ours, 1) else first


def knob_address(row: EngineKnob) -> str | None:
    """Return the address, relative to this page, that sets a row's knob; None where none does."""
    value = set_value(row)
    if row.knob is None or value is None:
        return None
    policy = next((p for p, engine in ENGINE_OF_POLICY.items() if engine == row.engine), "chunked")
    if row.knob in IN_SIMULATOR:
        parameters = {
            "policy": TITLES[policy],
            "prompt": "32768",
            # A budget shows where no cap is below it.
            **({"chunk": str(MAX_PROMPT)} if row.knob == "token_budget" else {}),
            IN_SIMULATOR[row.knob]: str(value).lower() if isinstance(value, bool) else str(value),
        }
        return f"./?{urlencode(parameters)}"
    plain, short = policy, SHORT_KNOBS[row.knob]
    changed = f"{policy}{FIELD}{short}-{value_text(value)}"
    if isinstance(value, bool):
        plain = f"{policy}{FIELD}{short}-{value_text(not value)}"
    parameters = {"scene": IN_COMPARE[row.knob], "engines": ROW.join([plain, changed])}
    return f"./compare?{urlencode(parameters)}"
