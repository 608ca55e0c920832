"""Runs that the tests of the traffic pictures share."""

from typing import Any

from s11 import Experiment, LinearCost, simulate
from s11.figures.traffic_look import TrafficRun
from tests.loads import load, request

COST = LinearCost(fixed_ms=4.0, prefill_ms_per_token=0.25, decode_ms_per_token=0.0)


def ran(label: str, experiment: Experiment, *, max_steps: int = 100_000) -> TrafficRun:
    return TrafficRun.of(label, experiment, simulate(experiment, max_steps=max_steps))


def two_streams_and_a_prompt(**engine: Any) -> Experiment:
    """A and B each want 20 tokens; C's prompt of 400 comes at 40 ms: 104 ms where it is whole."""
    requests = (
        request("A", 4, output_tokens=20),
        request("B", 4, output_tokens=20, arrival_ms=1.0),
        request("C", 400, arrival_ms=40.0),
    )
    return load(*requests, cost=COST, **engine)


def pair() -> list[TrafficRun]:
    whole = ran("whole prompts", two_streams_and_a_prompt(policy="whole_prompt"))
    return [whole, ran("chunked 40", two_streams_and_a_prompt(chunk=40))]


def plain(text: str) -> str:
    return text.split("<br>")[0].removeprefix("<b>").removesuffix("</b>")
