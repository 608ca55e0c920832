"""The proof by execution: every scheduler's schedule, run on the decoder, bit for bit.

What is expected needs no number: each request must get what it gets alone.
"""

import random
from dataclasses import replace

import numpy as np
import pytest

from s11 import EngineLimits, Experiment, LinearCost, Request, Workload, proof, simulate
from s11.attention import Decoder, DecoderConfig, generate
from s11.policies import POLICIES
from s11.proof import executed_steps, prompt_tokens, prove

SMALL = DecoderConfig(
    vocab_size=61, hidden_size=16, layers=2, query_heads=2, kv_heads=1, head_dim=8, ffn_size=24
)


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder(SMALL)


def pressed(policy: str, seed: int) -> Experiment:
    """A few requests, some with a beginning in common, on a pool that is too small for them."""
    draw = random.Random(seed)
    requests = [
        Request(
            request_id=f"r{n}",
            arrival_ms=draw.randrange(12),
            prompt_tokens=draw.randrange(20, 60),
            output_tokens=draw.randrange(4, 12),
            shared_group="system" if n % 2 else None,
            shared_tokens=20 if n % 2 else 0,
        )
        for n in range(5)
    ]
    last = requests[-1]
    requests.append(
        Request(
            request_id="next turn",
            arrival_ms=draw.randrange(20, 40),
            prompt_tokens=last.prompt_tokens + last.output_tokens + 7,
            output_tokens=3,
            continues=last.request_id,
        )
    )
    return Experiment(
        workload=Workload(requests=tuple(requests), streaming_users=1, lead_in_steps=1),
        policy=policy,
        limits=EngineLimits(
            token_budget=80,
            chunk_tokens=24,
            block_size=8,
            kv_blocks=None if policy == "disaggregated" else 13,
            prefix_caching=policy != "disaggregated",
            mixed=bool(seed % 2),
        ),
        cost=LinearCost(fixed_ms=1, prefill_ms_per_token=0, decode_ms_per_token=0),
    )


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"disaggregated", "request_level"}))
def test_preempted_and_sharing_every_request_gets_what_it_gets_alone(
    policy: str, decoder: Decoder
) -> None:
    preemptions = hits = 0
    for seed in range(4):
        experiment = pressed(policy, seed)
        result = simulate(experiment)
        assert not result.never_finished
        preemptions += len(result.preemptions)
        hits += int((result.admissions.cached_tokens > 0).sum())
        for name, comparison in prove(experiment, decoder=decoder, seed=seed).items():
            assert comparison.identical, f"{name}, seed {seed}"
    assert preemptions
    assert hits


def test_request_level_batches_get_what_they_get_alone(decoder: Decoder) -> None:
    """Without a user who streams for ever, so that a batch can end."""
    for seed in range(4):
        experiment = pressed("request_level", seed)
        workload = replace(experiment.workload, streaming_users=0)
        experiment = replace(experiment, workload=workload)
        assert len(simulate(experiment).admissions) >= 6
        compared = prove(experiment, decoder=decoder)
        assert len(compared) == 6
        assert all(comparison.identical for comparison in compared.values())


def test_kv_that_travelled_gives_the_same_tokens(decoder: Decoder) -> None:
    for seed in range(4):
        experiment = pressed("disaggregated", seed)
        result = simulate(experiment)
        steps = executed_steps(result)
        assert result.prefill_worker is not None
        assert len(steps) == len(result.steps) + len(result.prefill_worker.steps)
        compared = prove(experiment, decoder=decoder)
        assert len(compared) == 7
        for request in experiment.workload.requests:
            assert compared[request.request_id].output_tokens == request.output_tokens
        assert all(comparison.identical for comparison in compared.values())


def test_prompts_share_what_their_requests_share(decoder: Decoder) -> None:
    requests = pressed("vllm_v1", 0).workload.requests
    prompts = prompt_tokens(requests, decoder=decoder, seed=0)
    assert prompts["r1"][:20].tolist() == prompts["r3"][:20].tolist()
    assert prompts["r1"][20:40].tolist() != prompts["r3"][20:40].tolist()
    before = next(r for r in requests if r.request_id == "r4")
    served = generate(prompts["r4"], before.output_tokens, decoder=decoder)
    follows = prompts["next turn"]
    assert np.array_equal(follows[:-7], np.concatenate([prompts["r4"], served.tokens]))


def test_a_hit_on_other_tokens_is_found_out(
    decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof can fail: prompts that do not really begin alike have no K and V to share."""
    own = {
        r.request_id: np.random.default_rng(row).integers(0, SMALL.vocab_size, r.prompt_tokens)
        for row, r in enumerate(pressed("vllm_v1", 0).workload.requests)
    }
    monkeypatch.setattr(proof, "prompt_tokens", lambda *_args, **_options: own)
    with pytest.raises(ValueError, match="the leading tokens that some request has computed"):
        prove(pressed("vllm_v1", 0), decoder=decoder)


def test_requests_that_share_hash_blocks_share_tokens_and_get_what_they_get_alone(
    decoder: Decoder,
) -> None:
    """The first 512 tokens are common; of those to come, what begins with another id is not."""
    requests = (
        Request(request_id="a", prompt_tokens=520, output_tokens=3, hash_ids=(7, 1)),
        Request(request_id="b", prompt_tokens=530, output_tokens=3, hash_ids=(7, 2), arrival_ms=90),
    )
    prompts = prompt_tokens(requests, decoder=decoder, seed=3)
    assert [len(prompts[name]) for name in "ab"] == [520, 530]
    assert (prompts["a"][:512] == prompts["b"][:512]).all()
    assert (prompts["a"][512:] != prompts["b"][512:520]).any()

    experiment = Experiment(
        workload=Workload(requests=requests),
        policy="vllm_v1",
        limits=EngineLimits(token_budget=100, chunk_tokens=None, prefix_caching=True),
        cost=LinearCost(fixed_ms=10, prefill_ms_per_token=0, decode_ms_per_token=0),
    )
    result = simulate(experiment)
    assert result.admissions.cached_tokens.tolist() == [0, 512]
    compared = prove(experiment, decoder=decoder)
    assert len(compared) == 2
    assert all(one.identical for one in compared.values())
