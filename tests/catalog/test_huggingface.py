"""config.json: the families' spellings, what is no dense decoder, and what is no config at all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.catalog import KNOWN_MODELS, MAX_CONFIG_BYTES, Model, model_from_config

# As the repositories have them, cut to what is read.
LLAMA_3_1_8B: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_act": "silu",
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
}
QWEN3_32B = {
    "model_type": "qwen3",
    "head_dim": 128,
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
}
QWEN_72B = {
    "model_type": "qwen",
    "hidden_size": 8192,
    "intermediate_size": 49152,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "kv_channels": 128,
    "vocab_size": 152064,
    "seq_length": 32768,
    "tie_word_embeddings": False,
}
PHI_2 = {
    "model_type": "phi",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "hidden_act": "gelu_new",
    "vocab_size": 51200,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
LLAMA_13B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 5120,
    "intermediate_size": 13824,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "hidden_act": "silu",
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "n_positions": 1024,
    "n_ctx": 1024,
    "vocab_size": 50257,
    "activation_function": "gelu_new",
}
OPT_1_3B = {
    "model_type": "opt",
    "hidden_size": 2048,
    "ffn_dim": 8192,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
    "activation_function": "relu",
    "vocab_size": 50272,
    "max_position_embeddings": 2048,
}
FALCON_7B = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "num_kv_heads": 71,
    "multi_query": True,
    "new_decoder_architecture": False,
    "parallel_attn": True,
    "vocab_size": 65024,
}
FALCON_40B = {
    "model_type": "falcon",
    "hidden_size": 8192,
    "num_hidden_layers": 60,
    "num_attention_heads": 128,
    "num_kv_heads": 8,
    "new_decoder_architecture": True,
    "vocab_size": 65024,
}
PYTHIA_6_9B = {
    "model_type": "gpt_neox",
    "hidden_act": "gelu",
    "hidden_size": 4096,
    "intermediate_size": 16384,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "tie_word_embeddings": False,
    "vocab_size": 50432,
}
GEMMA_2B = {
    "model_type": "gemma",
    "head_dim": 256,
    "hidden_act": "gelu",
    "hidden_size": 2048,
    "intermediate_size": 16384,
    "max_position_embeddings": 8192,
    "num_attention_heads": 8,
    "num_hidden_layers": 18,
    "num_key_value_heads": 1,
    "vocab_size": 256000,
}
CHATGLM3_6B = {
    "model_type": "chatglm",
    "hidden_size": 4096,
    "ffn_hidden_size": 13696,
    "kv_channels": 128,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "num_attention_heads": 32,
    "num_layers": 28,
    "padded_vocab_size": 65024,
    "seq_length": 8192,
}
STARCODER = {
    "model_type": "gpt_bigcode",
    "multi_query": True,
    "n_embd": 6144,
    "n_head": 48,
    "n_inner": 24576,
    "n_layer": 40,
    "n_positions": 8192,
    "vocab_size": 49152,
}
MPT_7B = {
    "model_type": "mpt",
    "d_model": 4096,
    "n_heads": 32,
    "n_layers": 32,
    "expansion_ratio": 4,
    "max_seq_len": 2048,
    "vocab_size": 50432,
    "attn_config": {"attn_type": "multihead_attention"},
}


def read(config: object, **settings: Any) -> Model:
    return model_from_config(json.dumps(config), **settings)


def changed(**changes: Any) -> dict[str, Any]:
    return LLAMA_3_1_8B | changes


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in LLAMA_3_1_8B.items() if name != key}


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LLAMA_3_1_8B, "llama-3.1-8b"),
        (QWEN3_32B, "qwen3-32b"),
        (QWEN_72B, "qwen-72b"),
        (PHI_2, "phi-2"),
        (LLAMA_13B, "llama-13b"),
    ],
)
def test_a_models_config_gives_the_catalogs_model(config: object, name: str) -> None:
    assert read(config, name=name) == KNOWN_MODELS[name]


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        # What the model cards state; GPT-2 and Pythia with biases, which are left out here.
        (GPT2, 124_439_808),
        (OPT_1_3B, 1_315_758_080),
        (PYTHIA_6_9B, 6_857_302_016),
        (GEMMA_2B, 2_506_172_416),
        (CHATGLM3_6B, 6_243_584_000),
        (STARCODER, 15_517_456_384),
        (MPT_7B, 6_649_286_656),
        (FALCON_7B, 6_921_720_704),
        (FALCON_40B, 41_303_293_952),
    ],
)
def test_families_spellings_and_silences(config: object, parameters: int) -> None:
    assert read(config).parameters() == pytest.approx(parameters, rel=0.002)


@pytest.mark.parametrize(
    ("config", "kv_heads", "gated"),
    [
        (GPT2, 12, False),
        (OPT_1_3B, 32, False),
        (FALCON_7B, 1, False),
        (FALCON_40B, 8, False),
        (FALCON_7B | {"multi_query": False}, 71, False),
        (PYTHIA_6_9B, 32, False),
        (GEMMA_2B, 1, True),
        (CHATGLM3_6B, 2, True),
        (CHATGLM3_6B | {"multi_query_attention": False}, 32, True),
        (STARCODER, 1, False),
        (MPT_7B, 32, False),
        (MPT_7B | {"attn_config": {"kv_n_heads": 8}}, 8, False),
    ],
)
def test_kv_heads_and_gates(config: object, kv_heads: int, gated: bool) -> None:
    model = read(config)
    assert (model.kv_heads, model.gated) == (kv_heads, gated)


@pytest.mark.parametrize(
    ("activation", "gated"),
    [("silu", True), ("swiglu", True), ("geglu", True), ("gelu", False), ("relu2", False)],
)
def test_of_an_unknown_family_the_activation_tells(activation: str, gated: bool) -> None:
    assert read(changed(model_type="nova", hidden_act=activation)).gated is gated


def test_what_is_absent_or_null() -> None:
    absent = {key: LLAMA_3_1_8B[key] for key in LLAMA_3_1_8B if key != "num_key_value_heads"}
    assert read(absent).kv_heads == 32
    assert read(changed(num_key_value_heads=None)).kv_heads == 32
    assert read(changed(head_dim=None)).head_dim == 128
    assert read(changed(num_local_experts=None, moe_layers=[], num_experts=0)).layers == 32
    assert read(changed(is_encoder_decoder=False)).layers == 32
    assert read(GPT2 | {"n_inner": 1_000}).ffn == 1_000


def test_of_a_multimodal_model_the_text_part_counts() -> None:
    inner = {key: value for key, value in LLAMA_3_1_8B.items() if key != "tie_word_embeddings"}
    outer = {
        "model_type": "some_vision_model",
        "text_config": inner,
        "vision_config": {"hidden_size": 1},
        "hidden_size": 7,
        "tie_word_embeddings": True,
    }
    model = read(outer, name="seeing")
    assert (model.hidden, model.tied_embeddings) == (4096, True)


@pytest.mark.parametrize(
    ("said", "given_name", "name"),
    [
        ("meta-llama/Llama-3.1-8B", None, "Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B", "mine", "mine"),
        ("", None, "custom"),
        (None, None, "custom"),
        (7, None, "custom"),
        ("a\n\x00b\u202e", None, "ab"),
        ("x" * 500, None, "x" * 80),
    ],
)
def test_what_a_model_is_called(said: object, given_name: str | None, name: str) -> None:
    model = read(changed(_name_or_path=said), name=given_name)
    assert (model.name, model.title) == (name, name)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (changed(num_local_experts=8), r"^num_local_experts: 8, so mixture of experts "),
        (changed(num_experts=128), "^num_experts: 128, so mixture of experts "),
        (changed(n_routed_experts=256), "^n_routed_experts: 256, so mixture of experts "),
        (changed(moe_intermediate_size=1408), "^moe_intermediate_size: .* mixture of experts "),
        (changed(model_type="mixtral"), "^model_type: 'mixtral', so mixture of experts "),
        (changed(ffn_config={"moe_num_experts": 16}), "^moe_num_experts: 16, so mixture "),
        (changed(kv_lora_rank=512), "^kv_lora_rank: 512, so latent attention "),
        (changed(model_type="mamba2"), "^model_type: 'mamba2', so state space "),
        (changed(mamba_d_state=16), "^mamba_d_state: 16, so state space "),
        (changed(linear_num_value_heads=32), "^linear_num_value_heads: 32, so state space "),
        (changed(is_encoder_decoder=True), "^is_encoder_decoder: True, so encoder "),
        (changed(model_type="t5"), "^model_type: 't5', so encoder "),
        (changed(model_type="bert"), "^model_type: 'bert', so encoder "),
        (changed(block_configs=[{}]), "^block_configs: .* so layers that differ "),
        ({"text_config": changed(num_experts=8)}, "^num_experts: 8, so mixture of experts "),
    ],
)
def test_only_dense_decoders_are_read(config: object, reason: str) -> None:
    with pytest.raises(
        ValueError, match=reason + r".*\(allowed: dense decoder-only models only\)$"
    ):
        read(config)


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("hidden_size", -4096, "hidden_size"),
        ("hidden_size", 0, "hidden_size"),
        ("hidden_size", True, "hidden_size"),
        ("hidden_size", "4096", "hidden_size"),
        ("hidden_size", 4096.0, "hidden_size"),
        ("hidden_size", 1e308, "hidden_size"),
        ("hidden_size", 10**19, "hidden_size"),
        ("hidden_size", [4096], "hidden_size"),
        ("num_hidden_layers", 10_000, "num_hidden_layers"),
        ("intermediate_size", {}, "intermediate_size"),
        ("num_attention_heads", 0, "num_attention_heads"),
        ("num_attention_heads", 33, "head_dim"),  # 4,096 over 33
        ("num_key_value_heads", 5, "kv_heads"),  # 32 over 5
        ("num_key_value_heads", False, "num_key_value_heads"),
        ("head_dim", -1, "head_dim"),
        ("vocab_size", 10**9, "vocab_size"),
        ("max_position_embeddings", 2**40, "max_position_embeddings"),
        ("tie_word_embeddings", "no", "tie_word_embeddings"),
        ("model_type", ["llama"], "model_type"),
        ("text_config", [1], "text_config"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(key: str, value: object, field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}: ") as refusal:
        read(changed(**{key: value}))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "key",
    [
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
    ],
)
def test_a_missing_dimension_is_refused_by_its_names(key: str) -> None:
    with pytest.raises(ValueError, match=rf"\b{key}\b.*: missing \(allowed: a whole number from 1"):
        read(without(key))


def test_an_unknown_family_must_say_its_activation() -> None:
    nameless = {key: value for key, value in without("hidden_act").items() if key != "model_type"}
    with pytest.raises(ValueError, match=r"^hidden_act: missing"):
        read(nameless)
    with pytest.raises(ValueError, match=r"^hidden_act: 3 "):
        read(nameless | {"hidden_act": 3})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON at line 1, column 1"),
        ("{", "no JSON at line 1"),
        ('{"a": 1,}', "no JSON at line 1"),
        ("[]", r"a list \(allowed: one JSON object\)"),
        ("null", "a NoneType"),
        ("3", "a int"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"hidden_size": ' + "9" * 60_000 + "}", "a number of 60,000 digits"),
        ("[" * 60_000, "nested too deep"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "nested too deep"),
        ('{"model_type":' + "[" * 900 + "]" * 900 + "}", "nested too deep"),
        ('{"hidden_size":' + "[" * 33 + "]" * 33 + "}", "nested too deep"),
        (" " * (MAX_CONFIG_BYTES + 1), r"65,537 bytes \(allowed: at most 65,536\)"),
        ('"' + "é" * 40_000 + '"', "80,002 bytes"),
        ("\ud800", "no JSON"),
        (b"{}", "a bytes"),
        (None, "a NoneType"),
    ],
)
def test_what_is_no_config_is_refused(text: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^config.json: .*{reason}") as refusal:
        model_from_config(text)
    assert len(str(refusal.value)) < 200


KEYS = st.sampled_from(
    [*LLAMA_3_1_8B, *GPT2, *FALCON_40B, *CHATGLM3_6B, *MPT_7B, "text_config", "ffn_config"]
)
TYPES = st.sampled_from(["llama", "gpt2", "falcon", "mpt", "chatglm", "qwen", "nova", "", "t5"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, 8, 64, 4096, 2**63, 1e308])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8) | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(text=st.text() | VALUES.map(json.dumps))
def test_garbage_never_raises_anything_else(text: str) -> None:
    try:
        model_from_config(text)
    except ValueError as refusal:
        assert str(refusal)  # noqa: PT017


@given(
    changes=st.dictionaries(KEYS, VALUES, max_size=4), base=st.sampled_from([LLAMA_3_1_8B, GPT2])
)
def test_a_damaged_config_gives_a_model_or_a_sentence(
    changes: dict[str, Any], base: dict[str, Any]
) -> None:
    try:
        model = read(base | changes)
    except ValueError as refusal:
        assert "allowed: " in str(refusal) or " is not " in str(refusal)  # noqa: PT017
        assert "\n" not in str(refusal)  # noqa: PT017
    else:
        assert model.parameters() > 0
        assert model.heads % model.kv_heads == 0
