"""Serving runs as their rows tell them: the sweep's rules, the clients, and runs by hand."""

import itertools
from dataclasses import replace

import pytest

from s11.catalog import MODELS, Deployment, kv_capacity
from s11.costs import LinearCost
from s11.validation import serving
from s11.validation.serving import (
    LEAST_PAUSE_MS,
    MOST_PAUSE_MS,
    ServingRun,
    experiment_of,
    preset_of,
    serve,
)


def run(**changes):
    machine = {name: changes.pop(name) for name in ("gpu", "tensor_parallel") if name in changes}
    asked = {
        "source": "vendor sweep",
        "backend": "vllm",
        "deployment": Deployment(model=MODELS["llama-3.1-8b"], **{"gpu": "h100", **machine}),
        "prompt_tokens": 1_000,
        "output_tokens": 20,
        "concurrency": 7,
    }
    return ServingRun(**{**asked, **changes})


@pytest.fixture
def steps_take(monkeypatch):
    """Stands a linear cost in for the roofline's."""

    def replace_cost(fixed_ms, prefill_ms_per_token=0.0, decode_ms_per_token=0.0):
        cost = LinearCost(
            fixed_ms=fixed_ms,
            prefill_ms_per_token=prefill_ms_per_token,
            decode_ms_per_token=decode_ms_per_token,
        )
        monkeypatch.setattr(serving, "RooflineCost", lambda **_: cost)

    return replace_cost


@pytest.fixture
def pool_of(monkeypatch):
    """Gives the KV pool so many blocks, whatever the catalog says."""

    def replace_capacity(kv_blocks):
        monkeypatch.setattr(
            serving,
            "kv_capacity",
            lambda *asked, **more: replace(kv_capacity(*asked, **more), kv_blocks=kv_blocks),
        )

    return replace_capacity


def test_vllm_in_the_sweep_has_a_budget_of_clients_prompt_and_1500():
    limits = experiment_of(run()).limits
    assert limits.token_budget == 7 + 1_000 + 1_500
    assert experiment_of(run(concurrency=128, prompt_tokens=4_096)).limits.token_budget == 5_724


def test_tensorrt_llm_in_the_sweep_rounds_its_budget_up_to_whole_blocks():
    experiment = experiment_of(run(backend="trtllm"))
    assert experiment.policy == "tensorrt_llm"
    # 2,507 tokens are 78.3 blocks of 32.
    assert experiment.limits.block_size == 32
    assert experiment.limits.token_budget == 79 * 32
    exact = experiment_of(run(backend="trtllm", concurrency=8, prompt_tokens=1_020))
    assert exact.limits.token_budget == 2_528 == 79 * 32


def test_sglang_in_the_sweep_lets_decodes_ride_beside_prompt_and_1500():
    experiment = experiment_of(run(backend="sglang"))
    assert experiment.policy == "sglang"
    assert experiment.limits.mixed
    assert experiment.limits.token_budget == 2_500


@pytest.mark.parametrize("backend", ["vllm", "trtllm", "sglang"])
def test_another_source_runs_on_the_engines_defaults(backend):
    asked = run(backend=backend, source="somebody")
    kept = replace(preset_of(asked).limits, prefix_caching=False)
    assert replace(experiment_of(asked).limits, kv_blocks=None) == replace(kept, kv_blocks=None)


@pytest.mark.parametrize(
    ("backend", "gpu", "name"),
    [
        ("vllm", "h100", "vllm-8k"),
        ("vllm", "b200", "vllm-8k"),
        ("vllm", "l40s", "vllm-2k"),
        # vLLM takes the smaller defaults on an A100 of any size.
        ("vllm", "a100-80", "vllm-2k"),
        ("vllm", "a100-40", "vllm-2k"),
        ("sglang", "l4", "sglang-4k"),
        ("sglang", "l40s", "sglang-4k"),
        ("sglang", "h100", "sglang-8k"),
        ("sglang", "h200", "sglang-8k"),
        ("sglang", "b200", "sglang-16k"),
        ("trtllm", "h100", "tensorrt-llm"),
    ],
)
def test_defaults_go_by_engine_and_gpu(backend, gpu, name):
    assert preset_of(run(backend=backend, gpu=gpu)).name == name


@pytest.mark.parametrize("backend", ["vllm", "trtllm", "sglang"])
def test_nothing_is_shared_and_the_pool_is_the_catalogs(backend):
    assert not experiment_of(run(backend=backend)).limits.prefix_caching
    one, small, two = (
        experiment_of(run(backend=backend, **machine)).limits.kv_blocks or 0
        for machine in ({}, {"gpu": "l40s"}, {"tensor_parallel": 2})
    )
    assert 0 < small < one
    # Half the weights on each: more is left than twice one GPU's.
    assert two > 2 * one


def test_a_model_that_does_not_fit_is_refused():
    deployment = Deployment(model=MODELS["llama-3.1-70b"], gpu="h100")
    with pytest.raises(ValueError, match="does not fit"):
        experiment_of(run(deployment=deployment))


def test_each_client_sends_ten_requests_one_after_the_other():
    requests = experiment_of(run(concurrency=3)).workload.requests
    assert len(requests) == 30
    assert {(r.prompt_tokens, r.output_tokens) for r in requests} == {(1_000, 20)}
    first = [request for request in requests if request.after is None]
    assert [request.arrival_ms for request in first] == [0, 0, 0]
    for client in range(3):
        own = [r for r in requests if r.request_id.startswith(f"{client}.")]
        assert [r.after for r in own[1:]] == [r.request_id for r in own[:-1]]
        assert all(LEAST_PAUSE_MS <= r.arrival_ms <= MOST_PAUSE_MS for r in own[1:])
    # Clients do not pause alike, or they would stay in lock step.
    assert len({r.arrival_ms for r in requests if r.after}) == 27


def test_a_run_is_the_same_every_time():
    assert experiment_of(run()) == experiment_of(run())


@pytest.mark.parametrize("backend", ["vllm", "trtllm", "sglang"])
def test_one_client_by_hand(steps_take, backend):
    steps_take(4.0, 0.018, 0.05)
    means = serve(run(backend=backend, concurrency=1))
    # Alone on the engine: 4 + 1,000 x 0.018 = 22 ms of prefill, 4.05 ms for each decode.
    assert means.ttft_ms == pytest.approx(22.0)
    assert means.tpot_ms == pytest.approx(4.05)
    assert not means.kv_exhausted


def test_all_clients_start_at_once_and_the_first_round_counts(steps_take):
    steps_take(0.001, 1.0)
    # The budget of 2 + 100 + 1,500 holds both prompts: 200.001 ms until both have a first token.
    # Later each waits for its own prompt of 100 ms, and for what is left of the other's.
    means = serve(run(prompt_tokens=100, output_tokens=2, concurrency=2))
    assert 100 < means.ttft_ms <= 200.001


def test_steps_of_one_length_give_tpot_of_that_length(steps_take):
    steps_take(10.0)
    means = serve(run(concurrency=5, output_tokens=3))
    assert means.tpot_ms == pytest.approx(10.0)
    # A request waits for the step that runs when it comes, then for its own.
    assert 10.0 <= means.ttft_ms < 20.0


def test_one_token_is_no_decode(steps_take):
    steps_take(10.0)
    assert serve(run(output_tokens=1)).tpot_ms == 0


def test_kv_blocks_that_run_short_are_told(steps_take, pool_of):
    steps_take(10.0)
    asked = run(prompt_tokens=100, output_tokens=50, concurrency=2)
    # 149 tokens are 10 blocks of 16: 20 hold both clients, 19 do not.
    pool_of(20)
    assert not serve(asked).kv_exhausted
    pool_of(19)
    assert serve(asked).kv_exhausted


def test_a_request_that_can_never_end_is_refused(steps_take, pool_of):
    steps_take(10.0)
    pool_of(9)
    with pytest.raises(ValueError, match="can never end"):
        serve(run(prompt_tokens=100, output_tokens=50, concurrency=1))


def test_more_clients_wait_longer():
    means = [serve(run(concurrency=clients)) for clients in (1, 8, 64)]
    for fewer, more in itertools.pairwise(means):
        assert fewer.ttft_ms < more.ttft_ms
        assert fewer.tpot_ms < more.tpot_ms
