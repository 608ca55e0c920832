"""What a token budget costs: its memory, and with it a busy load's throughput."""

import pytest

from s11.budgets import REQUESTS_PER_CLIENT, BusyLoad, serve, try_budget
from s11.catalog import MODELS, Deployment, kv_capacity
from s11.costs import RooflineCost

L40S = Deployment(model=MODELS["llama-13b"], gpu="l40s")
BUSY = BusyLoad(clients=16, prompt_tokens=512, output_tokens=64)
STEPS = 20_000


def tried(budget, machine=L40S, load=BUSY, **changes):
    values = {"smallest_budget": 512, "policy": "vllm_v1", "max_steps": STEPS}
    return try_budget(machine, load, budget, **{**values, **changes})


@pytest.mark.parametrize("policy", ["vllm_v1", "sglang", "tensorrt_llm", "chunked"])
def test_the_smallest_budget_has_the_pool_that_it_is_compared_with(policy):
    one = tried(512, policy=policy)
    assert one.refused == ""
    assert one.output_tokens_per_s == one.same_pool_tokens_per_s > 0


def test_a_larger_budget_leaves_what_the_capacity_says():
    pools = []
    for budget in (512, 8192, 65_536):
        capacity = kv_capacity(L40S, token_budget=budget, max_seqs=min(256, budget))
        pools.append(tried(budget).kv_tokens)
        assert pools[-1] == capacity.kv_tokens
    assert pools == sorted(pools, reverse=True)


def test_memory_alone_tells_the_two_throughputs_apart():
    """Sixteen requests of 1,152 tokens need 18,432, more than the large budget leaves."""
    load = BusyLoad(clients=16, prompt_tokens=1024, output_tokens=128)
    one = tried(65_536, load=load)
    assert one.kv_tokens < 16 * 1152
    assert one.output_tokens_per_s < one.same_pool_tokens_per_s
    # With memory for all there is no difference.
    roomy = tried(65_536, load=BusyLoad(clients=2, prompt_tokens=64, output_tokens=8))
    assert roomy.output_tokens_per_s == roomy.same_pool_tokens_per_s
    assert roomy.preemptions == 0


def test_one_client_alone_by_arithmetic():
    """A prompt of one step, then a decode for each token but the first; four requests in a row."""
    served = serve(
        L40S,
        BusyLoad(clients=1, prompt_tokens=100, output_tokens=2),
        512,
        policy="vllm_v1",
        kv_blocks=100,
        max_steps=STEPS,
    )
    cost = RooflineCost(deployment=L40S)
    once_ms = cost.step_ms(prefill_tokens=100, decode_tokens=0)
    once_ms += cost.step_ms(prefill_tokens=0, decode_tokens=1, decode_context_tokens=100)
    assert served.output_tokens_per_s == pytest.approx(2000 / once_ms, rel=1e-3)
    assert REQUESTS_PER_CLIENT == 4


def test_what_cannot_be_served_says_why():
    big = Deployment(model=MODELS["qwen3-32b"], gpu="h100")
    one = tried(65_536, machine=big)
    assert "does not fit" in one.refused
    assert (one.kv_tokens, one.output_tokens_per_s) == (0, None)
    assert one.same_pool_tokens_per_s is not None
    with pytest.raises(ValueError, match="does not fit"):
        tried(65_536, machine=big, smallest_budget=65_536)
    assert tried(512, max_steps=5).refused == "cut at 5 steps"
    huge = BusyLoad(clients=1, prompt_tokens=30_000, output_tokens=1)
    assert tried(65_536, load=huge).refused == "a request's KV never fits the pool"
