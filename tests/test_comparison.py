"""What a comparison says, from tiny loads on the one-millisecond clock."""

from dataclasses import replace
from typing import Any

import pytest

from s11 import EngineLimits, Experiment, LinearCost, Workload, measure, simulate
from s11.comparison import Comparison, compare, same_schedule
from s11.entries import entry_labels
from s11.metric_rows import EngineRun, MetricRow, metric_rows, why_not_compared
from s11.presets import TITLES
from s11.scenes import SCENES
from s11.suffering import ttft_of
from s11.unserved import Unserved, unserved
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
    assert told.headline == "A waits 2 ms under Prefill first"
    assert told.lead == (
        "Under Prefill first, “A” waits 2 ms for its next token, since a step of 4 prompt tokens "
        "carries no decode; Chunked keeps it at 1 ms."
    )
    assert told.verdicts == (
        "“A” waits 2 ms for its next token, since a step of 4 prompt tokens carries no decode. "
        "“A” and “L” wait 1 ms for their first token, since the prompt of “A” takes 1 ms: 1 step "
        "of 1 token.",
        "Nobody waits over 1.5 ms for a next token, 1 ms at most. “L” waits 2 ms for its first "
        "token, since its prompt takes 2 ms: 2 steps of up to 2 tokens.",
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
        "SLO attainment": ((0.5, 1.0), (False, True)),  # A's 2 ms are over its 1.5
        "Decode throughput": (
            (pytest.approx(5000 / 7), pytest.approx(5000 / 6)),
            (False, True),
        ),
        "Preemptions": ((0.0, 0.0), (False, False)),
        "Makespan": ((7.0, 6.0), (False, True)),
    }
    assert found["SLO attainment"].texts == ("50.0%", "100.0%")
    assert found["Decode throughput"].texts == ("714 tok/s", "833 tok/s")


def test_attainment_holds_the_first_token_too_and_is_none_where_nobody_asks() -> None:
    """L's first token comes after 2 ms in chunks, A's after 1 ms, as L's where it goes first."""

    def shares(ttft_target_ms: float | None) -> tuple[float | None, ...]:
        found = []
        for one in runs("prefill_first", "chunked", chunk=2):
            met = measure(one.result, itl_target_ms=1.5, ttft_target_ms=ttft_target_ms)
            found.append(replace(one, metrics=met))
        return rows(found)["SLO attainment"].values

    assert shares(1.5) == (0.5, 0.5)  # A's stall, L's wait
    assert shares(2.0) == (0.5, 1.0)
    empty = ran(Experiment(workload=Workload(requests=(), streaming_users=2)))
    assert rows([empty])["SLO attainment"].texts == ("none",)


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
    # Of A, L and B one is served, and within 1.5 ms; in chunks A's steps with two tokens of L's
    # take 1 ms too, and B ends.
    assert found["SLO attainment"].values == pytest.approx((1 / 3, 1.0))
    assert found["Requests not served"].values == (2.0, 0.0)
    told = compare(both)
    assert told.headline == "2 requests not served under Whole prompts"
    assert told.lead == (
        "Under Whole prompts, “L” never runs, since a whole prompt does not fit into what is left "
        "of the budget, and 1 request behind it waits for ever. Chunked serves everyone."
    )


def test_whose_figures_are_not_compared_is_said_and_one_alone_is_never_best():
    requests = (*LOAD, request("B", 1, arrival_ms=1.5))
    both = runs("whole_prompt", "chunked", requests=requests, budget=3)
    assert why_not_compared(both) == [
        "Whole prompts leaves 2 requests out, so its figures are not compared."
    ]
    found = rows(both)
    for of_all in ("Requests not served", "SLO attainment"):
        assert found.pop(of_all).best == (False, True)
    assert not any(any(row.best) for row in found.values())
    three = [*both, *runs("vllm_v1", requests=requests, budget=3, chunk=1)]
    assert rows(three)["TTFT p99"].best == (False, True, False)
    assert why_not_compared(runs("whole_prompt", "chunked")) == []


def test_shared_step_is_told_with_the_tokens_of_others():
    """Request level: A runs to 3 ms; then one step of B's token and L's 40, as B is behind A."""
    requests = (
        request("A", 1, output_tokens=3),
        request("B", 1, arrival_ms=1.0),
        request("L", 40, arrival_ms=1.5),
    )
    cost = LinearCost(fixed_ms=1.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0)
    (run,) = runs("request_level", requests=requests, cost=cost)
    assert ttft_of(run.result, 1).sentence == (
        "“B” waits 3 ms for its first token, since it queues 2 ms, as the running batch decodes to "
        "its end first, and then its prompt takes 1 ms: 1 step of 1 token that also carries 40 "
        "tokens of “L”"
    )


def test_chat_that_queues_and_then_shares_a_step_with_the_long_prompt():
    """Queued 186 ms behind the batch; then 4 + 0.018 * (32,768 + 256) = 598.4 ms."""
    common = SCENES["one-long-prompt"].common
    told = compare([ran(replace(common, policy="request_level"))]).verdicts[0]
    assert (
        "“chat 3” waits 784 ms for its first token, since it queues 186 ms, as the running batch "
        "decodes to its end first, and then its prompt takes 598 ms: 1 step of 256 tokens that "
        "also carries 32,768 tokens of “long”."
    ) in told


def test_one_scheduler_alone_has_a_headline_of_its_own():
    (run,) = runs("prefill_first")
    told = compare([run])
    assert told.headline == "A waits 2 ms under Prefill first"
    assert ";" not in told.lead


@pytest.mark.parametrize("slug", SCENES)
def test_every_headline_names_its_scheduler_and_fits(slug: str):
    scene = SCENES[slug]
    labels = entry_labels(scene.entries)
    found = [ran(one, label=label) for one, label in zip(scene.experiments(), labels, strict=True)]
    for some in (found, found[:1]):
        headline = compare(some).headline
        assert any(headline.endswith(run.name) for run in some)
        assert len(headline) <= 44


def endless(*requests: Any, **limits: Any) -> EngineRun:
    some = EngineLimits(**{"chunk_tokens": None, "block_size": 4, "kv_blocks": 3} | limits)
    return ran(replace(load(*requests), limits=some))


def test_only_who_outgrows_the_pool_is_said_to():
    """Blocks of 4, 3 of them. A's 10 + 4 - 1 = 13 tokens need 4; B's 1 + 3 - 1 need 1.

    A goes back to the front of the queue for ever, so B never gets in.
    """
    run = endless(request("A", 10, output_tokens=4), request("B", 1, output_tokens=3, arrival_ms=9))
    assert not set(run.result.never_scheduled) & {"A"}
    assert unserved(run.experiment, run.result) == [
        Unserved(request_id="A", note="never ends: needs 4 KV blocks of 3", outgrows=True),
        Unserved(request_id="B", note="waits behind “A” for ever", behind="A"),
    ]
    assert (
        compare([run])
        .verdicts[0]
        .startswith(
            "“A” can never finish, since it grows to 4 KV blocks and the pool has 3, and 1 request "
            "behind it waits for ever."
        )
    )


def test_who_fits_the_pool_is_not_said_to_outgrow_it():
    """Blocks of 4, 5 of them, prompts whole in a budget of 8: A and B take 2 blocks each.

    At their 9th token both want a third, and B, the last, goes. It has 7 + 2 tokens to compute
    anew, too many for the budget, though its 7 + 6 - 1 = 12 need but 3 blocks. C is behind it.
    """
    two = [request(name, 7, output_tokens=6) for name in "AB"]
    limits = EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=5, token_budget=8)
    late = request("C", 1, arrival_ms=3.5)
    run = ran(replace(load(*two, late, policy="prefill_first"), limits=limits))
    assert unserved(run.experiment, run.result) == [
        Unserved(request_id="B", note="never ends: chunking off"),
        Unserved(request_id="C", note="waits behind “B” for ever", behind="B"),
    ]
    assert (
        compare([run])
        .verdicts[0]
        .startswith("“B” never ends: chunking off, and 1 request behind it waits for ever.")
    )


def test_first_that_never_runs_has_the_reason_and_the_others_wait_behind_it():
    (run,) = runs("whole_prompt", requests=[request(name, 4) for name in "ABC"], budget=3)
    notes = [(one.request_id, one.note, one.behind) for one in unserved(run.experiment, run.result)]
    assert notes == [
        ("A", "never runs: chunking off", None),
        ("B", "waits behind “A” for ever", "A"),
        ("C", "waits behind “A” for ever", "A"),
    ]


def test_budget_that_refuses_a_prompt_is_the_reason_though_the_pool_is_too_small_as_well():
    """13 tokens need 4 of 3 blocks; but whole it does not fit into the budget of 9 either."""
    limits = EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=3, token_budget=9)
    tight = replace(load(request("A", 13), policy="whole_prompt"), limits=limits)
    assert compare([ran(tight)]).verdicts[0] == (
        "“A” never runs, since a whole prompt does not fit into what is left of the budget."
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
        "Under SGLang, “victim” waits 79,650 ms for its next token, since 58 prompt steps in a row "
        "carry no decode; Chunked keeps it at 1,350 ms."
    )
    assert 79_650 == 58 * 1350 + 1350


def test_preempted_request_is_told_with_what_it_computes_anew():
    """Three blocks of 4: B loses its own at 1 ms, and gets its 5 tokens' step at 3 ms."""
    two = (request("A", 4, output_tokens=3), request("B", 4, output_tokens=3))
    tight = load(*two, target_ms=1.5)
    limits = EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=3)
    told = compare([ran(replace(tight, limits=limits)), ran(tight, label="Ample")])
    assert told.lead == (
        "Under Chunked, “B” waits 3 ms for its next token, since it is preempted and 5 of its "
        "tokens are computed anew; Ample keeps it at 1 ms."
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
        "Under Request level, “B” and “C” wait 5 ms for their first token, since “B” queues 4 ms, "
        "as the running batch decodes to its end first, and then the prompt of “B” takes 1 ms: "
        "1 step of 1 token; Chunked needs 1 ms."
    )


def test_kv_that_travels_is_told():
    (run,) = runs("disaggregated", requests=(request("A", 4),), chunk=2)
    assert compare([run]).verdicts == (
        "“A” waits 3 ms for its first token, since its prompt takes 2 ms: 2 steps of up to 2 "
        "tokens, and then its KV travels for 1 ms.",
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
    assert told.lead.startswith("Under Prefill first, 4 streaming users wait 2 ms for their next")
