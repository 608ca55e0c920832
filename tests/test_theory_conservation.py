"""Conservation: no token is made or lost, over public traces and over random loads."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from s11 import Experiment, Result, simulate
from s11.costs import FittedCost
from s11.plan import EngineLimits
from s11.traces import read_trace
from tests.loads import random_kv_experiment

COST = FittedCost(
    fixed_ms=4.0, prefill_ms_per_token=0.018, decode_ms_per_token=0.05, context_ms_per_token=1e-5
)
AZURE, MOONCAKE = "azure_conv_2023.csv", "mooncake_conversation_head.jsonl"


def lost_tokens(result: Result) -> int:
    """The tokens in the cache of who lost its blocks, at each preemption.

    Since it got its seat: where its last slice ended, and a token for each of its decodes.
    """
    slices, spans, admissions = result.slices, result.spans, result.admissions
    decode_steps = np.flatnonzero(result.steps.decode_tokens)
    lost = 0
    for row, step in zip(result.preemptions.request, result.preemptions.step, strict=True):
        seats = np.flatnonzero((admissions.request == row) & (admissions.step < step))
        seated = int(admissions.step[seats[-1]])
        given = np.flatnonzero(
            (slices.request == row) & (slices.step >= seated) & (slices.step < step)
        )
        lost += int(slices.start_token[given[-1]] + slices.tokens[given[-1]])
        for span in np.flatnonzero(spans.request == row):
            first = int(spans.first_decode[span])
            decoded_in = decode_steps[first : first + int(spans.decodes[span])]
            lost += int(np.count_nonzero((decoded_in >= seated) & (decoded_in < step)))
    return lost


def check(experiment: Experiment, result: Result) -> None:
    """Hold the tables of a run that serves everybody against what was asked for."""
    requests, slices, spans = result.requests, result.slices, result.spans
    assert (result.never_scheduled, result.never_finished, result.rejected) == ((), (), ())
    got = np.zeros(len(requests), dtype=np.int64)
    np.add.at(got, spans.request, spans.decodes + 1)
    assert got.tolist() == requests.output_tokens.tolist()

    steps = result.steps
    in_steps = np.bincount(slices.step, weights=slices.tokens, minlength=len(steps))
    assert in_steps.tolist() == steps.prefill_tokens.tolist()
    streamed = experiment.workload.streaming_users * np.count_nonzero(steps.decode_tokens)
    own_decodes = int(spans.decodes.sum())
    assert int(steps.decode_tokens.sum()) == own_decodes + streamed

    # All but each last output are computed and kept; what is lost is computed, or found, again.
    asked = int((requests.prompt_tokens + requests.output_tokens - 1).sum())
    computed = int(slices.tokens.sum()) + own_decodes
    found = int(result.admissions.cached_tokens.sum())
    assert computed + found - lost_tokens(result) == asked


def of_trace(
    path: Path,
    limits: EngineLimits,
    *,
    policy: str,
    first: int | None,
    time_scale: float = 1.0,
) -> Experiment:
    trace = read_trace(path, name=path.name, first=first, time_scale=time_scale)
    return Experiment(workload=trace.workload(), policy=policy, limits=limits, cost=COST)


def test_every_request_of_the_azure_trace_gets_exactly_its_tokens(shared_dir: Path) -> None:
    path = shared_dir / "traces" / AZURE
    limits = EngineLimits(token_budget=512, chunk_tokens=None, max_seqs=128)
    experiment = of_trace(path, limits, policy="chunked", first=None)
    result = simulate(experiment)
    check(experiment, result)
    rows = path.read_text(encoding="utf-8").splitlines()[1:]
    asked = np.array([[int(cell) for cell in row.split(",")[1:]] for row in rows if row])
    kept = asked[asked[:, 1] > 0]
    assert len(result.requests) == len(kept)
    assert int(result.slices.tokens.sum()) == int(kept[:, 0].sum())
    assert int(result.spans.decodes.sum()) == int((kept[:, 1] - 1).sum())


@pytest.mark.parametrize("caching", [False, True])
def test_where_kv_blocks_are_short_what_is_lost_is_computed_again(
    shared_dir: Path, caching: bool
) -> None:
    limits = EngineLimits(
        token_budget=2048,
        chunk_tokens=None,
        max_seqs=256,
        kv_blocks=1_000,
        prefix_caching=caching,
    )
    path = shared_dir / "traces" / AZURE
    experiment = of_trace(path, limits, policy="vllm_v1", first=700, time_scale=0.35)
    result = simulate(experiment)
    assert len(result.preemptions) > 10
    check(experiment, result)


def test_what_the_mooncake_trace_shares_is_computed_once(shared_dir: Path) -> None:
    limits = EngineLimits(
        token_budget=8192, chunk_tokens=None, max_seqs=256, kv_blocks=500_000, prefix_caching=True
    )
    path = shared_dir / "traces" / MOONCAKE
    experiment = of_trace(path, limits, policy="vllm_v1", first=500)
    result = simulate(experiment)
    assert result.admissions.cached_tokens.any()
    check(experiment, result)


@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_no_token_is_made_or_lost(draw: random.Random) -> None:
    """Of random loads in which everybody is served, KV blocks short or not."""
    experiment = random_kv_experiment(draw)
    result = simulate(experiment)
    assume(not (result.never_scheduled or result.never_finished or result.rejected))
    check(experiment, result)
