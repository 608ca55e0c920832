"""How model families spell their dimensions, and what their code fills in where a file is silent.

Source: transformers, each family's configuration_*.py (names and defaults) and modeling_*.py
(what is gated, tied and parallel).
"""

from __future__ import annotations

import re
from typing import NamedTuple

SPELLINGS = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "ffn": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "max_positions": (
        "max_position_embeddings",
        "n_positions",
        "n_ctx",
        "max_seq_len",
        "seq_length",
        "model_max_length",
    ),
}


class Family(NamedTuple):
    """What a family's code decides: see `Model` for the words; None where the file has to say."""

    gated: bool | None = None
    tied_embeddings: bool = False
    parallel_attention: bool = False
    learned_positions: bool = False
    multi_query: bool = False


UNKNOWN = Family()
_LLAMA_LIKE = Family(gated=True)
_GEMMA_LIKE = Family(gated=True, tied_embeddings=True)
_GPT2_LIKE = Family(gated=False, tied_embeddings=True, learned_positions=True)
_COHERE_LIKE = Family(gated=True, tied_embeddings=True, parallel_attention=True)
FAMILIES = {
    "llama": _LLAMA_LIKE,
    "mistral": _LLAMA_LIKE,
    "qwen": _LLAMA_LIKE,
    "qwen2": _LLAMA_LIKE,
    "qwen3": _LLAMA_LIKE,
    "phi3": _LLAMA_LIKE,
    "internlm": _LLAMA_LIKE,
    "internlm2": _LLAMA_LIKE,
    "baichuan": _LLAMA_LIKE,
    "chatglm": _LLAMA_LIKE,
    "stablelm": _LLAMA_LIKE,
    "olmo": _LLAMA_LIKE,
    "olmo2": _LLAMA_LIKE,
    "granite": _LLAMA_LIKE,
    "gemma": _GEMMA_LIKE,
    "gemma2": _GEMMA_LIKE,
    "gemma3": _GEMMA_LIKE,
    "gemma3_text": _GEMMA_LIKE,
    "cohere": _COHERE_LIKE,
    "cohere2": _COHERE_LIKE,
    "gpt2": _GPT2_LIKE,
    "gpt_neo": _GPT2_LIKE,
    "opt": _GPT2_LIKE,
    "biogpt": _GPT2_LIKE,
    "gpt_bigcode": _GPT2_LIKE._replace(multi_query=True),
    "bloom": Family(gated=False, tied_embeddings=True),
    "mpt": Family(gated=False, tied_embeddings=True),
    "starcoder2": Family(gated=False, tied_embeddings=True),
    "falcon": Family(gated=False, tied_embeddings=True, parallel_attention=True, multi_query=True),
    "phi": Family(gated=False, parallel_attention=True),
    "gptj": Family(gated=False, parallel_attention=True),
    "codegen": Family(gated=False, parallel_attention=True),
    "gpt_neox": Family(gated=False),
    "nemotron": Family(gated=False),
    "persimmon": Family(gated=False),
}


class OtherKind(NamedTuple):
    """A kind of model that is not modelled, by a key that its files have or by its family."""

    title: str
    keys: re.Pattern[str]
    families: re.Pattern[str]


OTHER_KINDS = (
    OtherKind(
        "mixture of experts",
        re.compile(r"moe|(^|_)experts?($|_)"),
        re.compile(r"moe|mixtral|dbrx|deepseek_v|grok|jamba|gpt_oss|llama4"),
    ),
    OtherKind("latent attention", re.compile(r"kv_lora_rank"), re.compile(r"minicpm3")),
    OtherKind(
        "state space or linear attention",
        re.compile(r"mamba|ssm|^rwkv|^linear_(num|key|value|conv)|^(state_size|time_step_rank)$"),
        re.compile(r"mamba|rwkv|recurrent|retnet|qwen3_next|lfm2"),
    ),
    OtherKind(
        "encoder",
        re.compile(r"^(is_encoder_decoder|encoder_layers|d_kv|num_decoder_layers)$"),
        re.compile(r"bert|electra|whisper|pegasus|marian|^m?t5|^m?bart$|^vit$|^clip"),
    ),
    OtherKind(
        "layers that differ",
        re.compile(r"^(block_configs|num_key_value_heads_per_layer)$"),
        re.compile(r"nemotron-nas|deci|openelm"),
    ),
)
