"""Engine presets: the defaults as their documents give them, and every name in place."""

from dataclasses import fields, replace

import pytest

from s11 import EngineLimits, Experiment, simulate
from s11.policies import POLICIES
from s11.presets import FLAGS, PRESETS, READS, TITLES, flag, flag_words
from tests.loads import load, request, schedule


@pytest.mark.parametrize(
    ("name", "policy", "budget", "chunk", "seats", "chunking"),
    [
        ("vllm-16k", "vllm_v1", 16_384, None, 1_024, True),
        ("vllm-8k", "vllm_v1", 8_192, None, 1_024, True),
        ("vllm-2k", "vllm_v1", 2_048, None, 256, True),
        ("sglang-2k", "sglang", None, 2_048, None, True),
        ("sglang-4k", "sglang", None, 4_096, None, True),
        ("sglang-8k", "sglang", None, 8_192, None, True),
        ("sglang-16k", "sglang", None, 16_384, None, True),
        ("tensorrt-llm", "tensorrt_llm", 8_192, None, 2_048, False),
        ("tensorrt-llm-chunked", "tensorrt_llm", 8_192, None, 2_048, True),
    ],
)
def test_defaults_are_the_engines(
    name: str, policy: str, budget: int | None, chunk: int | None, seats: int | None, chunking: bool
) -> None:
    preset = PRESETS[name]
    limits = preset.limits
    assert (preset.name, preset.policy) == (name, policy)
    assert (limits.token_budget, limits.chunk_tokens, limits.max_seqs) == (budget, chunk, seats)
    assert (limits.chunking, limits.mixed, limits.prefill_interval) == (chunking, False, 1)


def test_each_says_whom_it_speaks_for_and_none_is_left_untested() -> None:
    assert len(PRESETS) == 9
    assert all(preset.speaks_for and preset.title for preset in PRESETS.values())
    assert len({preset.title for preset in PRESETS.values()}) == 9


def test_an_engine_takes_over_all_but_how_much_memory_there_is() -> None:
    base = Experiment(limits=EngineLimits(token_budget=99, kv_blocks=700, max_model_len=9_000))
    made = PRESETS["vllm-2k"].of(base)
    expected = replace(PRESETS["vllm-2k"].limits, kv_blocks=700, max_model_len=9_000)
    assert (made.policy, made.limits) == ("vllm_v1", expected)
    assert made.workload == base.workload


def test_pools_that_are_sized_in_tokens_are_said_to_be() -> None:
    tokens = "(tokens: blocks × block size)"
    assert flag_words("sglang", "kv_blocks") == f"`--max-total-tokens` {tokens}"
    assert flag_words("tensorrt_llm", "kv_blocks") == f"`kv_cache_config.max_tokens` {tokens}"
    assert flag_words("vllm_v1", "kv_blocks") == "`--num-gpu-blocks-override`"
    assert flag_words("sglang", "max_seqs") == "`--max-running-requests`"
    assert flag_words("chunked", "kv_blocks") is None


def test_presets_change_what_is_run() -> None:
    """A prompt of 8,192 beside 24 decodes: in 1, 2, 5 steps by budget; in 4, 2, 1, 1 chunks; a
    budget of 8,192 has no room for all of it where prompts are whole."""
    steps = {
        name: int((simulate(preset.of(Experiment())).steps.prefill_tokens > 0).sum())
        for name, preset in PRESETS.items()
    }
    assert steps == {
        "vllm-16k": 1,
        "vllm-8k": 2,
        "vllm-2k": 5,
        "sglang-2k": 4,
        "sglang-4k": 2,
        "sglang-8k": 1,
        "sglang-16k": 1,
        "tensorrt-llm": 0,
        "tensorrt-llm-chunked": 2,
    }


def test_flags_and_knobs_name_what_is_there() -> None:
    knobs = {field.name for field in fields(EngineLimits)}
    assert set(TITLES) == set(READS) == set(POLICIES)
    assert all(set(flags) <= knobs for flags in FLAGS.values())
    assert all(read <= knobs for read in READS.values())
    assert flag("vllm_v1", "token_budget") == "--max-num-batched-tokens"
    assert flag("sglang", "chunk_tokens") == "--chunked-prefill-size"
    assert flag("tensorrt_llm", "token_budget") == "max_num_tokens"
    assert flag("chunked", "token_budget") is None


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("knob", ["token_budget", "chunk_tokens", "chunking", "mixed"])
def test_a_knob_changes_the_steps_where_it_says_so(policy: str, knob: str) -> None:
    """Three prompts of 40 at once: a budget of 20 for 45, a cap of 16 for 24, chunking off."""
    values = {"token_budget": 20, "chunk_tokens": 16, "chunking": False, "mixed": True}
    if policy == "slo_adaptive" and knob == "chunking":
        return  # refused
    base = load(
        *(request(f"r{n}", 40, output_tokens=3) for n in range(3)),
        users=0 if policy in ("request_level", "disaggregated") else 2,
        policy=policy,
        chunk=24,
        budget=45,
        block_size=4,
    )
    changed = replace(base, limits=replace(base.limits, **{knob: values[knob]}))  # type: ignore[arg-type]

    def steps(experiment: Experiment) -> object:
        result = simulate(experiment)
        return schedule(experiment), result.prefilling.slices.tokens.tolist()

    assert (steps(base) != steps(changed)) == (knob in READS[policy])
