"""The traffic page's state: its controls' values by key, and the runs that they ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from s11.catalog import Deployment
from s11.checks import require_ms
from s11.policies import CHUNKING, DISAGGREGATED
from s11.presets import TITLES
from s11.traffic_presets import TRAFFIC_PRESETS
from s11.ui import machine, traffic_samples
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole
from s11.ui.traffic_search import MOST_REQUESTS as MOST_SEARCHED
from s11.ui.traffic_setup import (
    MOST_REQUESTS,
    ClosedLoopTraffic,
    DrawnTraffic,
    SampleTrace,
    Setup,
    Side,
    Source,
    UploadedTrace,
)
from s11.ui.traffic_upload import uploaded

MODEL_KEY = "llm"
MODES = TRAFFIC, CAPACITY = ("Traffic", "Capacity")
STEP_COSTS = MACHINE_COST, CHAPTER_COST = ("A model on a GPU", "The chapter's cost")
SAMPLE, UPLOAD = "A sample trace", "Your own trace"
SOURCES = {preset.title: name for name, preset in TRAFFIC_PRESETS.items()}
# A policy whose two workers have no common KV pool and no common steps has its own page.
POLICIES = {title: name for name, title in TITLES.items() if name != DISAGGREGATED}
RATES = tuple(
    [
        f"{rate:g}"
        for rate in (
            *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5),
            *(4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 9, 10, 11, 12, 14, 16, 18, 20, 25, 30, 35, 40),
            *(50, 60, 80, 100),
        )
    ]
)
ARRIVALS = OPEN, CLOSED = ("At a rate", "Closed-loop clients")
CLIENTS = tuple(
    [
        str(clients)
        for clients in (
            *(1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 100, 128, 160, 192),
            *(256, 320, 384, 512, 768, 1024),
        )
    ]
)
TIME_SCALES = tuple(
    [
        f"{scale:g}"
        for scale in (
            0.1,
            0.2,
            0.25,
            0.3,
            0.4,
            0.5,
            0.6,
            0.7,
            0.8,
            0.9,
            1,
            1.2,
            1.5,
            2,
            3,
            4,
            5,
            10,
        )
    ]
)
STALLS = 10
STALL_NAMES = [f"{side}{rank}" for side in "AB" for rank in range(1, STALLS + 1)]
MOST_SECONDS, MOST_TARGET_MS, LEAST_TARGET_MS = 1e8, 600_000.0, 0.1
MOST_THINK_MS = 600_000.0

WHOLE: dict[str, tuple[int, int, int]] = {  # lowest, highest, step
    "request_count": (1, MOST_REQUESTS, 100),
    "search_requests": (1, MOST_SEARCHED, 100),
    "seed": (0, 1_000_000, 1),
    "a_chunk": (1, 131_072, 128),
    "b_chunk": (1, 131_072, 128),
    "most_running": (1, 4_096, 8),
    "trace_first": (1, MOST_REQUESTS, 100),
}
REAL: dict[str, tuple[float, float, float]] = {
    "burstiness": (0.01, 100.0, 0.1),
    "think_ms": (0.0, MOST_THINK_MS, 100.0),
    "ttft_target": (LEAST_TARGET_MS, MOST_TARGET_MS, 100.0),
    "gap_target": (LEAST_TARGET_MS, MOST_TARGET_MS, 5.0),
    "trace_from": (0.0, MOST_SECONDS, 60.0),
    "trace_to": (0.0, MOST_SECONDS, 60.0),
    "look_from": (0.0, MOST_SECONDS, 10.0),
    "look_to": (0.0, MOST_SECONDS, 10.0),
}

DEFAULTS: dict[str, Any] = {
    "traffic_mode": TRAFFIC,
    "traffic": TRAFFIC_PRESETS["openchat"].title,
    traffic_samples.KEY: traffic_samples.DEFAULT,
    "arrivals": OPEN,
    "rate": "5",
    "burstiness": 1.0,
    "clients": "32",
    "think_ms": 0.0,
    "request_count": 600,
    "search_requests": 1_000,
    "seed": 0,
    "a": TITLES["whole_prompt"],
    "a_chunk": 512,
    "b": TITLES["chunked"],
    "b_chunk": 512,
    "step_cost": MACHINE_COST,
    "most_running": 128,
    "caching": False,
    "ttft_target": 2_000.0,
    "gap_target": 50.0,
    "trace_from": 0.0,
    "trace_to": None,
    "trace_first": 2_000,
    "trace_scale": "1",
    "look_from": 0.0,
    "look_to": None,
    "stall": "A1",
}

PRESETS: dict[str, dict[str, str]] = {
    "Whole prompts or chunks": {},
    "Busier: 7 a second": {"rate": "7"},
    "Bursts": {"burstiness": "0.25", "rate": "4"},
    "Clients who wait": {"arrivals": CLOSED},
    "Long prompts: arxiv": {"traffic": TRAFFIC_PRESETS["arxiv"].title, "rate": "1.4"},
    "A sample trace": {"traffic": SAMPLE, "trace_scale": "0.5"},
    "Prefill first or chunks": {"a": TITLES["prefill_first"]},
    "Chunks of 256 or 2,048": {"a": TITLES["chunked"], "a_chunk": "256", "b_chunk": "2048"},
    "Which chunk size holds the most?": {"traffic_mode": CAPACITY},
}


def value_of(key: str) -> Any:
    """Return a control's value, its default where it has none (left empty, or not yet).

    A choice that is not laid yet is the link's.
    """
    value = st.session_state.get(key)
    if value is None and isinstance(DEFAULTS[key], str):
        value = st.query_params.get(key)
    return DEFAULTS[key] if value is None else value


def is_searching() -> bool:
    """Return whether the highest rate is to be searched."""
    return bool(value_of("traffic_mode") == CAPACITY)


def is_uploaded() -> bool:
    """Return whether the traffic is to come from a file."""
    return bool(value_of("traffic") == UPLOAD)


def is_trace() -> bool:
    """Return whether the traffic is to be a trace: a sample, or one from a file."""
    return value_of("traffic") in (SAMPLE, UPLOAD)


def is_closed_loop() -> bool:
    """Return whether drawn requests are to come from clients who wait for their answers."""
    return not is_trace() and bool(value_of("arrivals") == CLOSED)


def source() -> Source:
    """Return the chosen traffic.

    Raises:
        ValueError: a file that is not there (any more), a window that ends before it begins.
    """
    if is_closed_loop():
        return ClosedLoopTraffic(
            preset=SOURCES[str(value_of("traffic"))],
            clients=int(value_of("clients")),
            think_ms=float(value_of("think_ms")),
            request_count=int(value_of("request_count")),
            seed=int(value_of("seed")),
        )
    if not is_trace():
        return DrawnTraffic(
            preset=SOURCES[str(value_of("traffic"))],
            rate_per_s=float(value_of("rate")),
            burstiness=float(value_of("burstiness")),
            request_count=int(value_of("search_requests" if is_searching() else "request_count")),
            seed=int(value_of("seed")),
        )
    end = st.session_state.get("trace_to")
    part: dict[str, Any] = {
        "begin_s": float(value_of("trace_from")),
        "end_s": math.inf if end is None else float(end),
        "first": int(value_of("trace_first")),
        "time_scale": float(value_of("trace_scale")),
    }
    if is_uploaded():
        return UploadedTrace(digest=uploaded().digest, **part)
    return SampleTrace(name=traffic_samples.TITLES[str(value_of(traffic_samples.KEY))], **part)


def side(name: str) -> Side:
    """Return the scheduler of side "a" or "b"; who takes prompts whole has no chunk size."""
    policy = POLICIES[str(value_of(name))]
    chunk_tokens = int(value_of(f"{name}_chunk")) if policy in CHUNKING else None
    return Side(policy=policy, chunk_tokens=chunk_tokens)


def deployment() -> Deployment | None:
    """Return the chosen machine; None for the chapter's cost.

    Raises:
        ValueError: heads that cannot be shared out, or no config.json for an own model.
    """
    if value_of("step_cost") == CHAPTER_COST:
        return None
    return machine.deployment(MODEL_KEY, chapter=False)


def setup(name: str) -> Setup:
    """Return all that the run of side "a" or "b" depends on.

    Raises:
        ValueError: values that do not go together, in one sentence.
    """
    return Setup(
        source=source(),
        side=side(name),
        most_running=int(value_of("most_running")),
        prefix_caching=bool(value_of("caching")),
        machine=deployment(),
        ttft_target_ms=float(value_of("ttft_target")),
        itl_target_ms=float(value_of("gap_target")),
    )


def number(low: float, high: float) -> Callable[[str], Any]:
    """Return a check for a number from `low` to `high`."""

    def check(text: str) -> float:
        try:
            value: object = float(text)
        except ValueError:
            value = text
        return require_ms("value", value, low, high)

    return check


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    **machine.link_checks(MODEL_KEY, chapter=False),
    "step_cost": one_of(*STEP_COSTS),
    "traffic_mode": one_of(*MODES),
    "traffic": one_of(*SOURCES, SAMPLE, UPLOAD),
    traffic_samples.KEY: one_of(*traffic_samples.TITLES),
    "arrivals": one_of(*ARRIVALS),
    "rate": one_of(*RATES),
    "clients": one_of(*CLIENTS),
    "trace_scale": one_of(*TIME_SCALES),
    "a": one_of(*POLICIES),
    "b": one_of(*POLICIES),
    "caching": one_of("true", "false"),
    "stall": one_of(*STALL_NAMES),
    **{key: whole(low, high) for key, (low, high, _) in WHOLE.items()},
    **{key: number(low, high) for key, (low, high, _) in REAL.items()},
    "picture": one_of(*PICTURE_FORMATS),
}
