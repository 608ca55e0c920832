"""What a comparison says, from tiny loads on the one-millisecond clock."""

from dataclasses import replace
from typing import Any

import pytest

from s11 import EngineLimits, Experiment, LinearCost, Workload, measure, simulate
from s11.comparison import Comparison, compare, same_schedule
from s11.metric_rows import EngineRun, MetricRow, metric_rows
from s11.presets import TITLES
from tests.loads import load, request

# A decodes from 1 ms on; L arrives then.
LOAD = (request("A", 1, output_tokens=6), request("L", 4, arrival_ms=1.0))


def ran(experiment: Experiment, *, label: str = "") -> EngineRun:
    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    name = label or TITLES[experiment.policy]
    return EngineRun(label=name, experiment=experiment, result=result, metrics=metrics)


def runs(*policies: str, requests: Any = LOAD, **limits: Any) -> list[EngineRun]:
    return [ran(load(*requests, policy=name, target_ms=1.5, **limits)) for name in policies]


def rows(found: list[EngineRun]) -> dict[str, MetricRow]:
    return {row.title: row for row in metric_rows(found)}


def test_sufferer_reason_and_who_spares_them():
    """Prefill first: step 2 is L's alone, A's gap is 2 ms; in chunks of 2 it stays 1 ms."""
    told = compare(runs("prefill_first", "chunked", chunk=2))
    assert told.headline == "A waits 2 ms under prefill first"
    assert told.lead == (
        "Under prefill first, A waits 2 ms for its next token, since a step of 4 prompt tokens "
        "carries no decode; chunked keeps it at 1 ms."
    )
    assert told.verdicts == (
        "A waits 2 ms for its next token, since a step of 4 prompt tokens carries no decode. "
        "A and L wait 1 ms for their first token, since A's prompt takes 1 step of 1 token.",
        "Nobody waits over 1.5 ms for a next token, 1 ms at most. L waits 2 ms for its first "
        "token, since its prompt takes 2 steps of up to 2 tokens.",
    )
    assert told.identical == ()


def test_metrics_and_their_best():
    """A's five decodes end at 7 ms where L goes first, at 6 ms where it rides along."""
    found = rows(runs("prefill_first", "chunked", chunk=2))
    assert {title: (row.values, row.best) for title, row in found.items()} == {
        "Longest stall": ((2.0, 1.0), (False, True)),
        "TTFT p50": ((1.0, 1.0), (False, False)),  # equal: nothing is marked
        "TTFT p99": ((1.0, 2.0), (True, False)),
        "ITL p50": ((1.0, 1.0), (False, False)),
        "ITL p99": ((2.0, 1.0), (False, True)),
        "Decode throughput": (
            (pytest.approx(5000 / 7), pytest.approx(5000 / 6)),
            (False, True),
        ),
        "Preemptions": ((0.0, 0.0), (False, False)),
        "Makespan": ((7.0, 6.0), (False, True)),
    }
    assert found["Decode throughput"].texts == ("714 tok/s", "833 tok/s")


def test_ties_are_all_best():
    found = rows(runs("prefill_first", "chunked", "vllm_v1", chunk=2))
    assert found["Longest stall"].best == (False, True, True)


def test_who_leaves_somebody_out_is_never_best():
    """Budget 3: L's four tokens never fit whole, and B waits behind it for ever."""
    requests = (*LOAD, request("B", 1, arrival_ms=1.5))
    both = runs("whole_prompt", "chunked", requests=requests, budget=3)
    found = rows(both)
    assert found["TTFT p99"].texts[0] == "1 ms"  # A's alone
    assert not any(row.best[0] for row in found.values())
    assert found["Requests not served"].values == (2.0, 0.0)
    told = compare(both)
    assert told.headline == "Not everyone is served"
    assert told.lead == (
        "Under whole prompts, L never runs, since a whole prompt does not fit into what is left "
        "of the budget, and 1 request behind it waits for ever. Chunked serves everyone."
    )


def test_identical_runs_are_named_with_the_reason():
    found = runs("chunked", "vllm_v1", chunk=2)
    assert same_schedule(found[0].result, found[1].result)
    told = compare(found)
    assert told.headline == "All give the same here"
    assert told.identical == (
        "Chunked and vLLM V1 do exactly the same in every step here. With KV blocks to spare they "
        "always do on the same knobs: they differ only in whom they preempt.",
    )


def test_runs_of_one_and_of_two_workers_are_not_the_same():
    one, two = runs("chunked", "disaggregated", requests=(request("A", 2),))
    assert not same_schedule(one.result, two.result)
    assert same_schedule(two.result, simulate(two.experiment))


def test_58_prompt_steps_hold_a_stream_as_long_as_they_take():
    """The measured stall: 200,019 tokens in chunks of 3,456, 1.35 s each, then its own decode."""
    experiment = Experiment(
        workload=Workload(
            requests=(
                request("victim", 1, output_tokens=3),
                request("long", 200_019, arrival_ms=1350.0),
            )
        ),
        policy="sglang",
        limits=EngineLimits(chunk_tokens=3456, block_size=1),
        cost=LinearCost(fixed_ms=1350.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0),
    )
    mixed = replace(experiment, policy="chunked")
    told = compare([ran(experiment), ran(mixed)])
    assert told.lead == (
        "Under SGLang, victim waits 79,650 ms for its next token, since 58 prompt steps in a row "
        "carry no decode; chunked keeps it at 1,350 ms."
    )
    assert 79_650 == 58 * 1350 + 1350


def test_preempted_request_is_told_with_what_it_computes_anew():
    """Three blocks of 4: B loses its own at 1 ms, and gets its 5 tokens' step at 3 ms."""
    two = (request("A", 4, output_tokens=3), request("B", 4, output_tokens=3))
    tight = load(*two, target_ms=1.5)
    limits = EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=3)
    told = compare([ran(replace(tight, limits=limits)), ran(tight, label="Ample")])
    assert told.lead == (
        "Under chunked, B waits 3 ms for its next token, since it is preempted and 5 of its "
        "tokens are computed anew; ample keeps it at 1 ms."
    )


def test_wait_in_the_queue_and_behind_another():
    """Request level: B and C arrive at 1 ms; A's four decodes run to 5 ms; then one step."""
    requests = (
        request("A", 1, output_tokens=5),
        request("B", 1, arrival_ms=1.0),
        request("C", 1, arrival_ms=1.0),
    )
    told = compare(runs("request_level", "chunked", requests=requests))
    assert told.lead == (
        "Under request level, B and C wait 5 ms for their first token, since for 4 steps the "
        "running batch decodes to its end first; chunked needs 1 ms."
    )


def test_kv_that_travels_is_told():
    (run,) = runs("disaggregated", requests=(request("A", 4),), chunk=2)
    assert compare([run]).verdicts == (
        "A waits 3 ms for its first token, since its prompt takes 2 steps of up to 2 tokens, "
        "after which its KV travels.",
    )


def test_nothing_to_compare():
    told = compare([])
    assert isinstance(told, Comparison)
    assert told.headline == "Nothing to compare"
    assert all(row.values == () for row in told.rows)


def test_streaming_users_are_named_together():
    told = compare(
        [
            ran(load(request("L", 9), users=4, lead_in=1, tail=1, policy=name, target_ms=1.5))
            for name in ("prefill_first", "chunked")
        ]
    )
    assert told.lead.startswith("Under prefill first, 4 streaming users wait 2 ms for their next")
