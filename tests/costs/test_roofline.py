"""The roofline cost model: its two ways agree, and it never beats the datasheet."""

import re
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11 import Experiment, simulate
from s11.catalog import GPUS, MODELS, Deployment, Model
from s11.costs import FittedCost, RooflineCost, StepWork
from s11.costs.breakdown import successive_ms
from s11.costs.host import HOSTS
from s11.plan import EngineLimits
from s11.workload import closed_loop_workload


def roofline(
    model: str = "llama-3.1-8b", gpu: str = "h100", tp: int = 1, precision: str = "bf16"
) -> RooflineCost:
    return RooflineCost(
        deployment=Deployment(model=MODELS[model], gpu=gpu, tensor_parallel=tp, precision=precision)
    )


COSTS = [
    roofline(),
    roofline("llama-2-70b", "a100-80", 4),
    roofline("qwen3-32b", "l40s", 2, "fp8"),
    roofline("phi-2", "l4"),
    roofline("llama-13b", "a6000"),
    roofline("yi-34b", "b200", 8),
]
COUNTS = st.integers(0, 600)
STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 50_000), st.integers(1, 5_000)), max_size=4),
        COUNTS,
        st.integers(0, 8_000),
    ).filter(lambda step: step[0] or step[1]),
    min_size=1,
    max_size=6,
)


def work_of(steps: Any) -> StepWork:
    slices = [(n, *part) for n, (parts, _, _) in enumerate(steps) for part in parts]
    columns = np.array(slices, dtype=np.int64).reshape(-1, 3)
    return StepWork(
        prefill_tokens=np.array([sum(own for _, own in parts) for parts, _, _ in steps]),
        decode_tokens=np.array([decodes for _, decodes, _ in steps]),
        decode_context_tokens=np.array([decodes * each for _, decodes, each in steps]),
        slice_step=columns[:, 0],
        slice_start_token=columns[:, 1],
        slice_tokens=columns[:, 2],
    )


@pytest.mark.parametrize("cost", COSTS, ids=RooflineCost.formula)
@given(steps=STEPS)
def test_the_engines_scalar_and_the_tables_arrays_agree(cost: RooflineCost, steps: Any) -> None:
    work = work_of(steps)
    scalars = [
        cost.step_ms(
            prefill_tokens=sum(own for _, own in parts),
            decode_tokens=decodes,
            slices=parts,
            decode_context_tokens=decodes * each,
        )
        for parts, decodes, each in steps
    ]
    assert cost.parts(work).total_ms() == pytest.approx(scalars, rel=1e-9)
    costs = cost.breakdown(work)
    assert costs.total_ms() == pytest.approx(scalars, rel=1e-9)
    for part in (costs.fixed_ms, costs.prefill_ms, costs.decode_ms):
        assert (part >= 0).all()


@pytest.mark.parametrize("cost", COSTS[:3], ids=RooflineCost.formula)
@pytest.mark.parametrize("slices", [[], [(0, 100)], [(512, 64), (0, 7)]])
@pytest.mark.parametrize("decodes", [0, 5])
def test_successive_steps_are_the_steps_one_by_one(
    cost: RooflineCost, slices: list[tuple[int, int]], decodes: int
) -> None:
    given_work: dict[str, Any] = {
        "slices": slices,
        "decode_tokens": decodes,
        "decode_context_tokens": 1000 * decodes,
    }
    fast = list(islice(cost.successive_ms(**given_work), 40))
    assert fast == list(islice(successive_ms(cost, **given_work), 40))
    if slices or decodes:
        assert fast == sorted(fast)  # contexts only grow


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_no_step_is_faster_than_the_datasheet_allows(gpu: str, precision: str) -> None:
    """Llama-3.1-8B has 6.98e9 weights in its layers and 0.53e9 in its LM head (128,256 x 4,096).

    All are read in a step; each token is multiplied with all of the layers', 2 FLOPs each.
    """
    cost = roofline(gpu=gpu, precision=precision)
    hardware = GPUS[gpu]
    layers = 32 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336)
    head = 128_256 * 4096
    assert layers == 6_979_321_856
    read_bytes = layers * (1 if precision == "fp8" else 2) + head * 2
    least_ms = read_bytes / hardware.hbm_bytes_per_s * 1e3
    decode_ms = cost.step_ms(prefill_tokens=0, decode_tokens=1)
    assert least_ms < decode_ms < 3 * least_ms + 5
    flops_per_s = hardware.bf16_flops_per_s
    if precision == "fp8" and hardware.fp8_flops_per_s:
        flops_per_s = hardware.fp8_flops_per_s
    prefill_ms = cost.step_ms(prefill_tokens=8192, decode_tokens=0)
    assert 2 * layers * 8192 / flops_per_s * 1e3 < prefill_ms


def test_decodes_ride_along_for_less_than_a_step_of_their_own() -> None:
    for cost in COSTS:
        alone = cost.step_ms(prefill_tokens=0, decode_tokens=8, decode_context_tokens=8192)
        prefill = cost.step_ms(prefill_tokens=1016, decode_tokens=0)
        both = cost.step_ms(prefill_tokens=1016, decode_tokens=8, decode_context_tokens=8192)
        assert both - prefill < 0.35 * alone


def test_chunking_reads_the_prefix_again_and_adds_overhead_but_no_arithmetic() -> None:
    cost = roofline()
    whole = cost.step_ms(prefill_tokens=16_384, decode_tokens=0)
    chunked = sum(
        cost.step_ms(prefill_tokens=1024, decode_tokens=0, slices=[(start, 1024)])
        for start in range(0, 16_384, 1024)
    )
    assert whole < chunked < 1.5 * whole


def test_more_gpus_and_smaller_weights_are_faster() -> None:
    def decode_ms(cost: RooflineCost) -> float:
        return cost.step_ms(prefill_tokens=0, decode_tokens=8, decode_context_tokens=8192)

    by_size = [decode_ms(roofline("llama-2-70b", "h100", size)) for size in (2, 4, 8)]
    assert by_size == sorted(by_size, reverse=True)
    assert decode_ms(roofline(precision="fp8")) < decode_ms(roofline())
    assert decode_ms(roofline(gpu="h200")) < decode_ms(roofline())


def test_grouped_queries_read_less_context() -> None:
    """64 heads on 8 KV heads (Qwen3-32B) against 40 on 40 (LLaMA-13B): 2 x 8 x 128 x 2 bytes a
    token and layer against 2 x 40 x 128 x 2, five times as many.
    """
    for_a_token = []
    for model, layers in (("qwen3-32b", 64), ("llama-13b", 40)):
        cost = roofline(model)
        least, most = (
            cost.step_ms(prefill_tokens=0, decode_tokens=32, decode_context_tokens=tokens)
            for tokens in (500_000, 1_000_000)
        )
        for_a_token.append((most - least) / layers)
    assert for_a_token[1] / for_a_token[0] == pytest.approx(5, rel=0.2)


def test_a_run_keeps_the_parts_of_every_step() -> None:
    workload = closed_loop_workload(
        clients=9, requests_per_client=3, prompt_tokens=700, output_tokens=30
    )
    experiment = Experiment(workload=workload, limits=EngineLimits(token_budget=512), cost=COSTS[0])
    steps = simulate(experiment).steps
    total = steps.fixed_ms + steps.prefill_ms + steps.decode_ms
    assert total == pytest.approx(steps.duration_ms, rel=1e-9)
    assert steps.end_ms - steps.start_ms == pytest.approx(steps.duration_ms, rel=1e-9)


def test_hosts_add_their_own_time() -> None:
    cost = roofline()
    least = {
        engine: RooflineCost(deployment=cost.deployment, engine=engine).step_ms(
            prefill_tokens=0, decode_tokens=0
        )
        for engine in HOSTS
    }
    assert least == {engine: host.step_ms for engine, host in HOSTS.items()}


@pytest.mark.parametrize("cost", COSTS, ids=RooflineCost.formula)
def test_plain_data_describes_it_whole(cost: RooflineCost) -> None:
    assert RooflineCost.from_dict(cost.to_dict()) == cost
    experiment = Experiment(cost=cost)
    assert Experiment.from_dict(experiment.to_dict()) == experiment


def test_a_model_of_ones_own_is_described_by_its_sizes() -> None:
    model = Model(
        name="mine",
        title="mine",
        layers=2,
        hidden=256,
        ffn=512,
        heads=4,
        kv_heads=2,
        head_dim=64,
        gated=True,
        vocab=1000,
        tied_embeddings=False,
        max_positions=2048,
    )
    cost = RooflineCost(deployment=Deployment(model=model, gpu="l4"))
    assert cost.to_dict()["llm"]["hidden"] == 256
    assert RooflineCost.from_dict(cost.to_dict()) == cost


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"gpu": "h100"}, "cost: llm is missing"),
        ({"llm": "phi-2"}, "cost: gpu is missing"),
        ({"llm": "gpt-9", "gpu": "h100"}, "llm: 'gpt-9' is not one of llama-2-7b"),
        ({"llm": {"layers": 2, "colour": 1}, "gpu": "h100"}, "llm: 'colour' is not a known key"),
        ({"llm": "phi-2", "gpu": "h100", "speed": 2}, "cost: 'speed' is not a known key"),
        ({"llm": "phi-2", "gpu": "h1000"}, "gpu: 'h1000' is not one of a100-40"),
        ({"llm": "phi-2", "gpu": "h100", "engine": "x"}, "engine: 'x' is not one of vllm"),
        ({"llm": "phi-2", "gpu": "h100", "tensor_parallel": 3}, "tensor_parallel: 3 GPUs"),
        ({"llm": {"layers": 2}, "gpu": "h100"}, "llm: name is missing"),
        ({"llm": 7, "gpu": "h100"}, "llm: 7 is not one of"),
    ],
)
def test_other_data_is_refused(data: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        RooflineCost.from_dict(data)


def test_what_cached_tokens_cost_counts_only_where_it_should() -> None:
    assert not RooflineCost.counts_only
    assert not FittedCost.counts_only
