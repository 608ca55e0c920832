"""A model from the config.json of its Hugging Face repository, which may say anything.

Sliding windows are not read: models that have one hold less KV than this says. Nor is a
quantisation: a deployment's precision says that.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from s11.catalog.families import FAMILIES, OTHER_KINDS, SPELLINGS, UNKNOWN, Family
from s11.catalog.models import MAX_NAME_CHARACTERS, MOST, Model
from s11.catalog.source import Source
from s11.checks import require_bool, require_int

MAX_CONFIG_BYTES = 65_536
MAX_DIGITS, MAX_DEPTH = 20, 32
DENSE_ONLY = "(allowed: dense decoder-only models only)"


def model_from_config(text: str, *, name: str | None = None) -> Model:
    """Return the model that a config.json describes.

    text: the file's content, at most 64 KiB. Of a multimodal model its `text_config` counts.
    name: what to call it; else what the file says, or "custom".

    Raises:
        ValueError: not such a file, a value out of range, or a model that is no dense
            decoder; one sentence with the field, its value and what is allowed.
    """
    config = _text_part(_parsed(text))
    model_type = config.get("model_type") or ""
    if not isinstance(model_type, str):
        raise ValueError(f"model_type: {_shown(model_type)} (allowed: a text)")
    _refuse_other_kinds(config, model_type)
    family = FAMILIES.get(model_type, UNKNOWN)
    hidden, heads = _required(config, "hidden"), _required(config, "heads")
    gated = _gated(config, family)
    called = _name(name, config)
    return Model(
        name=called,
        title=called,
        layers=_required(config, "layers"),
        hidden=hidden,
        ffn=_ffn(config, model_type, gated, hidden),
        heads=heads,
        kv_heads=_kv_heads(config, model_type, family, heads),
        head_dim=_head_dim(config, hidden, heads),
        gated=gated,
        vocab=_required(config, "vocab"),
        tied_embeddings=_switch(config, "tie_word_embeddings", family.tied_embeddings),
        max_positions=_max_positions(config, model_type),
        parallel_attention=_switch(config, "parallel_attn", family.parallel_attention),
        learned_positions=family.learned_positions,
        sources=(Source("the config.json given", "", tuple(SPELLINGS)),),
    )


def _parsed(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise ValueError(f"config.json: a {type(text).__name__} (allowed: text)")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_CONFIG_BYTES:
        raise ValueError(f"config.json: {size:,} bytes (allowed: at most {MAX_CONFIG_BYTES:,})")
    try:
        config = json.loads(text, parse_int=_whole_number, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"config.json: no JSON at {where} (allowed: one JSON object)") from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(config, dict):
        raise ValueError(f"config.json: a {type(config).__name__} (allowed: one JSON object)")
    level: list[Any] = [config]
    for _ in range(MAX_DEPTH):
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    if level:  # printing what the parser could just read would overflow the stack
        raise _too_deep()
    return config


def _too_deep() -> ValueError:
    return ValueError(f"config.json: nested too deep (allowed: at most {MAX_DEPTH} levels)")


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(
            f"config.json: a number of {len(digits):,} digits (allowed: at most {MAX_DIGITS})"
        )
    return int(digits)


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"config.json: {constant} (allowed: finite numbers)")


def _text_part(config: dict[str, Any]) -> dict[str, Any]:
    inner = config.get("text_config")
    if inner is None:
        return config
    if not isinstance(inner, dict):
        raise ValueError(f"text_config: a {type(inner).__name__} (allowed: a JSON object)")
    # The outer file's other values are of the whole, or of the vision part.
    outside = ("tie_word_embeddings", "is_encoder_decoder", "_name_or_path")
    return {key: config[key] for key in outside if key in config} | inner


def _refuse_other_kinds(config: dict[str, Any], model_type: str) -> None:
    nested = config.get("ffn_config")
    parts = [config, nested] if isinstance(nested, dict) else [config]
    # Null, false, 0 and empty ones switch nothing on.
    said = {key: value for part in parts for key, value in part.items() if value}
    for kind in OTHER_KINDS:
        for key, value in said.items():
            if kind.keys.search(key.lower()):
                raise ValueError(f"{key[:60]}: {_shown(value)}, so {kind.title} {DENSE_ONLY}")
        if kind.families.search(model_type.lower()):
            raise ValueError(f"model_type: {_shown(model_type)}, so {kind.title} {DENSE_ONLY}")


def _optional(config: dict[str, Any], dimension: str) -> int | None:
    """Return a dimension under whichever spelling, None where it is absent or null."""
    for key in SPELLINGS[dimension]:
        if config.get(key) is not None:
            return require_int(key, config[key], 1, MOST[dimension])
    return None


def _required(config: dict[str, Any], dimension: str) -> int:
    size = _optional(config, dimension)
    if size is None:
        spellings = " or ".join(SPELLINGS[dimension])
        raise ValueError(
            f"{spellings}: missing (allowed: a whole number from 1 to {MOST[dimension]:,})"
        )
    return size


def _switch(config: dict[str, Any], key: str, default: bool) -> bool:
    value = config.get(key)
    return default if value is None else require_bool(key, value)


def _gated(config: dict[str, Any], family: Family) -> bool:
    if family.gated is not None:
        return family.gated
    for key in ("hidden_act", "hidden_activation", "activation_function"):
        activation = config.get(key)
        if isinstance(activation, str):
            return re.search(r"silu|swish|glu$", activation.lower()) is not None
        if activation is not None:
            raise ValueError(f"{key}: {_shown(activation)} (allowed: an activation's name)")
    raise ValueError("hidden_act: missing (allowed: an activation's name, such as silu or gelu)")


def _ffn(config: dict[str, Any], model_type: str, gated: bool, hidden: int) -> int:
    if not gated and _optional(config, "ffn") is None:
        return hidden * require_int("expansion_ratio", config.get("expansion_ratio", 4), 1, 64)
    width = _required(config, "ffn")
    if model_type == "qwen":  # the first Qwen's code gives gate and up half of it each
        return require_int("intermediate_size", width, 2, MOST["ffn"]) // 2
    return width


def _kv_heads(config: dict[str, Any], model_type: str, family: Family, heads: int) -> int:
    nested = config.get("attn_config")
    if model_type == "mpt" and isinstance(nested, dict) and nested.get("kv_n_heads") is not None:
        return require_int("kv_n_heads", nested["kv_n_heads"], 1, heads)
    one_for_all = 1 if _switch(config, "multi_query", family.multi_query) else heads
    # Falcon's first architecture ignores num_kv_heads, which its files give all the same.
    if model_type == "falcon" and not _switch(config, "new_decoder_architecture", False):
        return one_for_all
    if model_type == "chatglm" and not _switch(config, "multi_query_attention", False):
        return heads
    return _optional(config, "kv_heads") or one_for_all


def _head_dim(config: dict[str, Any], hidden: int, heads: int) -> int:
    width = _optional(config, "head_dim")
    if width is None and hidden % heads:
        raise ValueError(
            f"head_dim: missing, and {heads:,} heads do not divide the hidden width of "
            f"{hidden:,} (allowed: a whole number from 1 to {MOST['head_dim']:,})"
        )
    return width or hidden // heads


def _max_positions(config: dict[str, Any], model_type: str) -> int:
    if model_type in {"falcon", "bloom"} and _optional(config, "max_positions") is None:
        return 2_048  # what both families were trained at; their files may leave it out
    return _required(config, "max_positions")


def _name(name: str | None, config: dict[str, Any]) -> str:
    said = config.get("_name_or_path") if name is None else name
    text = said.rstrip("/").rsplit("/", 1)[-1] if isinstance(said, str) else ""
    shown = "".join(character for character in text if character.isprintable()).strip()
    return shown[:MAX_NAME_CHARACTERS].strip() or "custom"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
