"""Drawn requests: the same ones at every rate, bounded, and clients who wait."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s11 import EngineLimits, Experiment, simulate
from s11.arrivals import ClosedLoopArrivals, GammaArrivals, PoissonArrivals
from s11.lengths import EmpiricalTokens, FixedTokens, LognormalTokens
from s11.traces import read_trace
from s11.traffic import Traffic
from s11.traffic_presets import TRAFFIC_PRESETS

TRAFFIC = Traffic(
    request_count=300,
    arrivals=PoissonArrivals(rate_per_s=2),
    prompt=LognormalTokens(median=100, p90=400),
    output=LognormalTokens(median=20, p90=60),
    seed=7,
)


def rows(traffic: Traffic) -> list[tuple[float, int, int]]:
    return [
        (request.arrival_ms, request.prompt_tokens, request.output_tokens)
        for request in traffic.workload().requests
    ]


def lengths(traffic: Traffic) -> list[tuple[int, int]]:
    return [(prompt, output) for _, prompt, output in rows(traffic)]


def test_requests_are_numbered_as_they_are_drawn() -> None:
    requests = TRAFFIC.workload().requests
    assert [request.request_id for request in requests] == [str(n) for n in range(300)]
    assert TRAFFIC.workload() == TRAFFIC.workload()


def test_another_rate_sends_the_same_requests_at_scaled_times() -> None:
    faster = TRAFFIC.at_rate(8)
    assert faster.arrivals == PoissonArrivals(rate_per_s=8)
    assert rows(faster) == [(time / 4, prompt, output) for time, prompt, output in rows(TRAFFIC)]


def test_other_arrivals_leave_the_lengths_as_they_were() -> None:
    for arrivals in (
        GammaArrivals(rate_per_s=2, burstiness=0.2),
        ClosedLoopArrivals(clients=300),
        PoissonArrivals(rate_per_s=math.inf),
    ):
        assert lengths(replace(TRAFFIC, arrivals=arrivals)) == lengths(TRAFFIC)


def test_another_seed_gives_other_requests() -> None:
    assert lengths(replace(TRAFFIC, seed=8)) != lengths(TRAFFIC)


@pytest.mark.parametrize("most_total_tokens", [None, 300])
def test_a_longer_run_begins_with_the_shorter_one(most_total_tokens: int | None) -> None:
    traffic = replace(TRAFFIC, most_total_tokens=most_total_tokens)
    longer = replace(traffic, request_count=3_000)
    assert rows(longer)[:300] == rows(traffic)


def test_prompts_and_outputs_are_independent() -> None:
    """The correlation of n independent pairs has standard error 1/√n."""
    pairs = np.array(lengths(replace(TRAFFIC, request_count=5_000)))
    assert abs(np.corrcoef(np.log(pairs).T)[0, 1]) < 3.9 / math.sqrt(5_000)


def test_requests_over_the_bound_are_passed_over() -> None:
    """The rule, on the draws themselves: those over the bound leave, the rest close up."""
    free = lengths(replace(TRAFFIC, request_count=2_000))
    fitting = [(prompt, output) for prompt, output in free if prompt + output <= 300]
    bounded = replace(TRAFFIC, most_total_tokens=300)
    assert lengths(bounded) == fitting[:300]
    assert len(fitting) < 1_700  # the bound bites


def test_a_bound_that_almost_nothing_keeps_is_refused() -> None:
    with pytest.raises(ValueError, match=r"most_total_tokens: 2 tokens leave 0 of [\d,]+ drawn"):
        replace(TRAFFIC, most_total_tokens=2, request_count=10).workload()


def test_arrivals_too_far_away_are_refused() -> None:
    slow = replace(TRAFFIC, arrivals=PoissonArrivals(rate_per_s=1e-9))
    with pytest.raises(ValueError, match="rate_per_s: 1e-09 puts the last request beyond"):
        slow.workload()


@pytest.mark.parametrize("clients", [1, 4, 40])
def test_never_more_requests_than_clients_are_in_the_system(clients: int) -> None:
    """Counted from the run: +1 at each arrival, −1 at each last token, ends before begins."""
    traffic = replace(
        TRAFFIC, request_count=120, arrivals=ClosedLoopArrivals(clients=clients, think_ms=30)
    )
    experiment = replace(
        Experiment(), workload=traffic.workload(), limits=EngineLimits(chunk_tokens=64)
    )
    requests = simulate(experiment).requests
    events = sorted(
        [(time, -1) for time in requests.last_token_ms.tolist()]
        + [(time, 1) for time in requests.arrival_ms.tolist()]
    )
    present = np.cumsum([change for _, change in events])
    assert present.max() == clients
    assert present[-1] == 0
    # A client sends its next request 30 ms after its last one has ended.
    ended = dict(zip(requests.request_id, requests.last_token_ms.tolist(), strict=True))
    for name, arrival_ms in zip(requests.request_id, requests.arrival_ms.tolist(), strict=True):
        number = int(name)
        expected = 0.0 if number < clients else ended[str(number - clients)] + 30
        assert arrival_ms == pytest.approx(expected)


EXAMPLES = (
    TRAFFIC,
    replace(TRAFFIC, most_total_tokens=500, prompt=FixedTokens(tokens=9)),
    replace(TRAFFIC, arrivals=ClosedLoopArrivals(clients=2), seed=2**63 - 1),
    replace(
        TRAFFIC,
        arrivals=GammaArrivals(rate_per_s=math.inf, burstiness=0.5),
        output=EmpiricalTokens(quantiles=(1, 5, 9)),
    ),
)


@pytest.mark.parametrize("traffic", EXAMPLES)
def test_there_and_back_through_json(traffic: Traffic) -> None:
    back = Traffic.from_dict(json.loads(json.dumps(traffic.to_dict(), allow_nan=False)))
    assert back == traffic
    assert hash(back) == hash(traffic)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"request_count": 0}, "request_count: 0 is not a whole number from 1 to 2,000,000"),
        ({"request_count": 2_000_001}, "request_count: 2000001"),
        ({"seed": -1}, "seed: -1"),
        ({"seed": 2**63}, "seed: 9223372036854775808"),
        ({"most_total_tokens": 1}, "most_total_tokens: 1"),
        ({"arrivals": "poisson"}, "arrivals: 'poisson' is none"),
        ({"prompt": 5}, "prompt: 5 is none"),
    ],
)
def test_values_out_of_range(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is what is tested
        replace(TRAFFIC, **changes)
    assert told in str(refused.value)


@pytest.mark.parametrize("key", ["request_count", "arrivals", "prompt", "output"])
def test_a_key_that_is_missing_or_unknown(key: str) -> None:
    data = TRAFFIC.to_dict()
    with pytest.raises(ValueError, match="traffic: 'other' is not a known key"):
        Traffic.from_dict({**data, "other": 1})
    del data[key]
    with pytest.raises(ValueError, match=f"traffic: {key} is missing"):
        Traffic.from_dict(data)


def test_the_papers_presets_hold_its_table() -> None:
    """Agrawal et al., Sarathi-Serve, OSDI 2024, Table 2, and the bounds of its section 5."""
    openchat, arxiv = TRAFFIC_PRESETS["openchat"], TRAFFIC_PRESETS["arxiv"]
    assert openchat.prompt == LognormalTokens(median=1730, p90=5696)
    assert openchat.output == LognormalTokens(median=415, p90=834)
    assert arxiv.prompt == LognormalTokens(median=7059, p90=12985)
    assert arxiv.output == LognormalTokens(median=208, p90=371)
    assert (openchat.most_total_tokens, arxiv.most_total_tokens) == (8192, 16384)


@pytest.mark.parametrize("name", TRAFFIC_PRESETS)
def test_every_preset_draws_and_keeps_its_bound(name: str) -> None:
    preset = TRAFFIC_PRESETS[name]
    assert preset.name == name
    traffic = preset.traffic(request_count=500, arrivals=PoissonArrivals(rate_per_s=1), seed=3)
    assert hash(traffic) == hash(Traffic.from_dict(traffic.to_dict()))
    totals = [prompt + output for prompt, output in lengths(traffic)]
    assert max(totals) <= (preset.most_total_tokens or math.inf)
    assert len(preset.source) > 40


def test_presets_have_titles_of_their_own() -> None:
    assert len({preset.title for preset in TRAFFIC_PRESETS.values()}) == len(TRAFFIC_PRESETS)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("azure-conv-2023", "azure_conv_2023.csv"),
        ("mooncake-conversation", "mooncake_conversation_head.jsonl"),
    ],
)
def test_recorded_presets_follow_their_trace(shared_dir: Path, name: str, file: str) -> None:
    """At each shipped quantile the trace's own share is right, up to values that come often."""
    trace = read_trace(shared_dir / "traces" / file, name=file)
    preset = TRAFFIC_PRESETS[name]
    for recorded, made in (
        (trace.prompt_tokens, preset.prompt),
        (trace.output_tokens, preset.output),
    ):
        assert isinstance(made, EmpiricalTokens)
        last = len(made.quantiles) - 1
        for number, value in enumerate(made.quantiles):
            below, up_to = np.mean(recorded < value), np.mean(recorded <= value)
            assert below <= number / last <= up_to
