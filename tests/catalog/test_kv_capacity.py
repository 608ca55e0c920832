"""KV capacity: against vLLM's own memory reports, by hand, and what does not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.catalog import (
    GPUS,
    KNOWN_MODELS,
    Deployment,
    activation_bytes,
    default_max_seqs,
    kv_capacity,
    kv_tokens_of_budgets,
)

GIB = 2**30


def deployed(name: str, *, gpu: str = "h100", gpus: int = 1, precision: str = "bf16") -> Deployment:
    return Deployment(model=KNOWN_MODELS[name], gpu=gpu, tensor_parallel=gpus, precision=precision)


# vLLM 0.11 on H100 at its defaults (share 0.9, budget 8,192, 1,024 sequences), GiB. Source:
# llm-d-benchmark, config_explorer/empirical-vllm-memory-results.md.
REPORTED = [
    ("llama-3.1-8b", 1, "bf16", 14.99, 4.76, 0.13, 51.38),
    ("qwen3-0.6b", 1, "bf16", 1.12, 5.56, 0.13, 64.45),
    ("qwen3-32b", 1, "bf16", 61.03, 5.64, 0.14, 4.45),
    ("qwen3-32b", 2, "bf16", 30.59, 5.64, 0.54, 34.49),
    ("llama-3.3-70b", 2, "fp8", 33.88, 4.84, 0.55, 32.0),
]


@pytest.mark.parametrize(
    ("name", "gpus", "precision", "weights", "activations", "overhead", "kv"), REPORTED
)
def test_as_vllm_reports_it(
    name: str,
    gpus: int,
    precision: str,
    weights: float,
    activations: float,
    overhead: float,
    kv: float,
) -> None:
    capacity = kv_capacity(deployed(name, gpus=gpus, precision=precision), token_budget=8_192)
    assert capacity.weights_bytes / GIB == pytest.approx(weights, rel=0.01)
    assert capacity.activation_bytes / GIB == pytest.approx(activations, rel=0.02)
    assert capacity.overhead_bytes / GIB == pytest.approx(overhead, abs=0.02)
    assert capacity.kv_bytes / GIB == pytest.approx(kv, abs=0.1)


def test_qwen3_on_two_h100_runs_short_where_a_measured_server_did() -> None:
    # Measured on vLLM 0.12: 64 clients of 4,096 + 128 tokens were served without a wait (all
    # full: 64 x 4,224), 64 of 4,096 + 1,024 were not (all full: 64 x 5,120).
    tokens = kv_capacity(deployed("qwen3-32b", gpus=2), token_budget=8_192).kv_tokens
    assert 64 * 4_224 < tokens < 64 * 5_120


def test_fewer_sequences_need_fewer_logits() -> None:
    # vLLM 0.6 with 256 sequences and a budget of 8,192: 1.26 GiB. Source: vLLM pull request 10511.
    peak = activation_bytes(deployed("llama-3-8b"), token_budget=8_192, max_seqs=256)
    assert peak / GIB == pytest.approx(1.26, rel=0.03)


def test_by_hand() -> None:
    capacity = kv_capacity(
        deployed("llama-2-7b", gpu="a100-80"), token_budget=2_048, block_size=32, memory_share=0.5
    )
    usable = round(79.25 * GIB) // 2
    weights = 2 * 6_738_415_616
    sampler = 256 * 32_000 * 38 + 2 * 2_048 * 4_096 * 2
    layer = 2_048 * (4 * 4_096 + 3 * 11_008) * 2
    assert layer < sampler
    overhead = round(0.14 * GIB)
    kv = usable - weights - sampler - overhead
    assert capacity.usable_bytes == usable
    assert (capacity.weights_bytes, capacity.overhead_bytes) == (weights, overhead)
    assert (capacity.activation_bytes, capacity.kv_bytes) == (sampler, kv)
    assert capacity.kv_blocks == kv // (32 * 524_288)
    assert capacity.kv_tokens == 32 * capacity.kv_blocks


def test_a_large_budget_peaks_inside_a_layer() -> None:
    alone = deployed("llama-2-7b")
    layer = 65_536 * (4 * 4_096 + 3 * 11_008) * 2
    assert activation_bytes(alone, token_budget=65_536, max_seqs=1) == layer
    shared = deployed("llama-2-7b", gpus=2)
    half = 65_536 * (4 * 4_096 + 3 * 5_504) * 2
    assert activation_bytes(shared, token_budget=65_536, max_seqs=1) == half


def test_no_more_rows_are_sampled_than_the_budget_has_tokens() -> None:
    alone = deployed("llama-2-7b")
    few, many = (activation_bytes(alone, token_budget=64, max_seqs=n) for n in (64, 1_024))
    assert few == many


def test_vllms_default_of_sequences() -> None:
    large = {name for name, gpu in GPUS.items() if default_max_seqs(gpu) == 1_024}
    assert large == {"h100", "h200", "b200"}
    assert {default_max_seqs(gpu) for gpu in GPUS.values()} == {256, 1_024}
    alone = deployed("llama-2-7b")
    assert kv_capacity(alone, token_budget=8_192) == kv_capacity(
        alone, token_budget=8_192, max_seqs=1_024
    )


@given(
    name=st.sampled_from(sorted(KNOWN_MODELS)),
    gpu=st.sampled_from(sorted(GPUS)),
    budgets=st.lists(st.integers(1, 200_000), min_size=2, max_size=5),
    max_seqs=st.integers(1, 2_048),
)
def test_a_larger_budget_never_leaves_more_for_the_kv_cache(
    name: str, gpu: str, budgets: list[int], max_seqs: int
) -> None:
    alone = deployed(name, gpu=gpu)
    tokens = kv_tokens_of_budgets(alone, sorted(budgets), max_seqs=max_seqs)
    assert list(tokens) == sorted(tokens, reverse=True)
    assert all(n >= 0 and n % 16 == 0 for n in tokens)
    for budget, expected in zip(sorted(budgets), tokens, strict=True):
        if expected:
            capacity = kv_capacity(alone, token_budget=budget, max_seqs=max_seqs)
            assert capacity.kv_tokens == expected
            used = capacity.kv_blocks * capacity.block_size * capacity.kv_bytes_per_token
            assert 0 <= capacity.kv_bytes - used < 16 * capacity.kv_bytes_per_token
            assert capacity.usable_bytes == (
                capacity.weights_bytes
                + capacity.activation_bytes
                + capacity.overhead_bytes
                + capacity.kv_bytes
            )
        else:
            with pytest.raises(ValueError, match="does not fit"):
                kv_capacity(alone, token_budget=budget, max_seqs=max_seqs)


def test_what_a_budget_costs() -> None:
    # 8,192 tokens more, two bf16 rows of 8,192 each: 268,435,456 bytes, of 163,840 a token and GPU.
    two = deployed("llama-3.1-70b", gpus=2, precision="fp8")
    small, large = kv_tokens_of_budgets(two, (8_192, 16_384))
    assert small - large == pytest.approx(268_435_456 / 163_840, abs=16)


def test_a_model_that_does_not_fit_is_refused_with_the_numbers() -> None:
    # 2 bytes x 32.76e9 weights against 90% of L40S's 44.39 GiB, which are 47.66 GB.
    with pytest.raises(ValueError, match=r"^model: qwen3-32b \(bf16\) does not fit 1 × L40S") as no:
        kv_capacity(deployed("qwen3-32b", gpu="l40s"), token_budget=2_048)
    sentence = str(no.value)
    for number in ("47.7 GB", "90% are 42.9 GB", "weights take 65.5"):
        assert number in sentence
    assert "(allowed: " in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("token_budget", 0),
        ("token_budget", None),
        ("token_budget", 1.5),
        ("token_budget", 2**40),
        ("block_size", 0),
        ("block_size", True),
        ("memory_share", 0),
        ("memory_share", 1.01),
        ("memory_share", float("nan")),
        ("memory_share", "0.9"),
        ("max_seqs", 0),
        ("max_seqs", -3),
    ],
)
def test_a_number_out_of_range_is_refused(field: str, value: object) -> None:
    settings: dict[str, object] = {"token_budget": 2_048, field: value}
    with pytest.raises(ValueError, match=f"^{field}: "):
        kv_capacity(deployed("llama-2-7b"), **settings)  # type: ignore[arg-type]
