"""The choice of a machine, shared by pages: model, GPU, tensor parallelism, precision.

Its values are the link's: `gpu`, `tp`, `precision`, the model under a name of the page's own
choosing, and `config`, what a pasted or uploaded config.json says of a model that is not listed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import streamlit as st

from s11.catalog import MODELS, PRECISIONS, TENSOR_PARALLEL, Deployment, Model
from s11.catalog.huggingface import model_from_config
from s11.machine_words import calibration_note as calibration_note
from s11.ui.frame import show_refusal
from s11.ui.link_checks import one_of

CHAPTER = "Chapter"
OWN = "Own model"
GPU_LABELS = {
    "a100-40": "A100 40 GB",
    "a100-80": "A100 80 GB",
    "h100": "H100",
    "h200": "H200",
    "b200": "B200",
    "l40s": "L40S",
    "l4": "L4",
    "a40": "A40",
    "a6000": "A6000",
}
DEFAULTS = {"gpu": "H100", "tp": "1", "precision": "bf16"}
DEFAULT_MODEL = "Llama-3.1-8B"
MAX_CONFIG_CHARACTERS = 4_000  # of a link; a pasted file may be longer, see huggingface
CONFIG_KEYS = {
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "ffn": "intermediate_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "vocab": "vocab_size",
    "max_positions": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
}


def _config(text: str) -> str:
    if len(text) > MAX_CONFIG_CHARACTERS:
        raise ValueError(
            f"value: {len(text):,} characters are too many (allowed: {MAX_CONFIG_CHARACTERS:,})"
        )
    if text:
        try:
            model_from_config(text)
        except ValueError as error:
            raise ValueError(f"value: {error}") from error
    return text


def link_checks(model_key: str, *, chapter: bool) -> dict[str, Callable[[str], Any]]:
    """Return the checks of the machine's parameters, for a page's own."""
    titles = [model.title for model in MODELS.values()]
    return {
        model_key: one_of(*([CHAPTER] if chapter else []), *titles, OWN),
        "gpu": one_of(*GPU_LABELS.values()),
        "tp": one_of(*map(str, TENSOR_PARALLEL)),
        "precision": one_of(*PRECISIONS),
        "config": _config,
    }


def machine_pills(model_key: str, *, chapter: bool) -> None:
    """Lay the pills; what they hold is read with `deployment`."""
    titles = [model.title for model in MODELS.values()]
    options = [*([CHAPTER] if chapter else []), *titles, OWN]
    _pills(
        "Model",
        options,
        CHAPTER if chapter else DEFAULT_MODEL,
        model_key,
        help="Dense decoder-only models; Chapter: three coefficients, no machine."
        if chapter
        else "Dense decoder-only models.",
    )
    chosen = _value(model_key, CHAPTER if chapter else DEFAULT_MODEL)
    if chosen == OWN:
        _own_model()
    off = chosen == CHAPTER
    _pills(
        "GPU",
        list(GPU_LABELS.values()),
        DEFAULTS["gpu"],
        "gpu",
        disabled=off,
        help="Measured: A100 80 GB, H100, L40S. The others take the efficiencies of their "
        "family's measured GPU, with their own datasheet's peaks.",
    )
    left, right = st.columns(2)
    with left:
        _pills(
            "GPUs that share the model (TP)",
            list(map(str, TENSOR_PARALLEL)),
            DEFAULTS["tp"],
            "tp",
            disabled=off,
            help="Tensor parallelism: each GPU holds a share of every layer, and two all-reduces "
            "a layer put the shares together.",
        )
    with right:
        _pills(
            "Weights",
            list(PRECISIONS),
            DEFAULTS["precision"],
            "precision",
            disabled=off,
            help="fp8: half the bytes, and on Hopper, Ada and Blackwell twice the arithmetic. "
            "The KV cache stays in bf16.",
        )


def deployment(
    model_key: str, *, chapter: bool, values: Mapping[str, str] | None = None
) -> Deployment | None:
    """Return the chosen machine; None for the chapter's cost.

    values: by parameter name, instead of what is chosen; what is left out is as it comes.

    Raises:
        ValueError: heads that cannot be shared out, or no config.json for an own model.
    """

    def value(key: str, default: str) -> str:
        return _value(key, default) if values is None else values.get(key, default)

    chosen = value(model_key, CHAPTER if chapter else DEFAULT_MODEL)
    if chosen == CHAPTER:
        return None
    if chosen == OWN:
        text = _kept_config() if values is None else values.get("config")
        if not text:
            raise ValueError(
                "config: nothing is pasted yet for the own model (allowed: a Hugging Face "
                "config.json of a dense decoder)"
            )
        model = model_from_config(text)
    else:
        model = next(model for model in MODELS.values() if model.title == chosen)
    label = value("gpu", DEFAULTS["gpu"])
    return Deployment(
        model=model,
        gpu=next(name for name, shown in GPU_LABELS.items() if shown == label),
        tensor_parallel=int(value("tp", DEFAULTS["tp"])),
        precision=value("precision", DEFAULTS["precision"]),
    )


def compact_config(model: Model) -> str:
    """Return the least config.json that describes the model, for a link."""
    sizes = asdict(model)
    config: dict[str, Any] = {key: sizes[name] for name, key in CONFIG_KEYS.items()}
    config |= {"hidden_act": "silu" if model.gated else "gelu", "_name_or_path": model.name}
    config["model_type"] = "llama" if model.gated else "gpt_neox"
    if model.learned_positions:
        config["model_type"] = "gpt2"
    if model.parallel_attention:
        config["parallel_attn"] = True
    return json.dumps(config, separators=(",", ":"))


def _own_model() -> None:
    kept = _kept_config()
    if kept and st.query_params.get("config") != kept:
        st.query_params["config"] = kept
    st.file_uploader(
        "config.json", type="json", key="config_file", max_upload_size=1, on_change=_take_file
    )
    st.text_area(
        "Or paste it",
        value=kept,
        key="config_text",
        height=100,
        on_change=_take_text,
        help="A Hugging Face config.json. What it says of the model's sizes goes into the link.",
    )
    refused = st.session_state.get("config_refused")
    if refused:
        show_refusal(refused)


def _kept_config() -> str:
    """Return the own model's config: the session's last good one, else the link's."""
    kept = st.session_state.get("own_config")
    return str(st.query_params.get("config", "") if kept is None else kept)


def _take_file() -> None:
    file = st.session_state.get("config_file")
    if file is not None:
        _keep(file.getvalue().decode("utf-8-sig", errors="replace"))


def _take_text() -> None:
    text = st.session_state.get("config_text") or ""
    if text:
        _keep(text)


def _keep(text: str) -> None:
    """Keep what a config.json says in few words; of one that is refused, why.

    It is no widget's value, because a widget would write what is refused into the link.
    """
    try:
        compact = compact_config(model_from_config(text.lstrip("\ufeff")))
    except ValueError as error:
        st.session_state["config_refused"] = str(error)
        return
    st.session_state["config_refused"] = None
    st.session_state["own_config"] = st.session_state["config_text"] = compact
    st.query_params["config"] = compact


def _pills(label: str, options: list[str], default: str, key: str, **more: Any) -> None:
    st.pills(
        label, options=options, default=default, key=key, bind="query-params", required=True, **more
    )


def _value(key: str, default: str) -> str:
    """Return a choice; before its pills are first laid, the link's."""
    return str(st.session_state.get(key) or st.query_params.get(key) or default)


def link_parameters(model_key: str) -> dict[str, str]:
    """Return the machine's part of a link, without what is as it comes."""
    chosen = {
        name: _value(name, default)
        for name, default in ((model_key, CHAPTER), *DEFAULTS.items())
        if _value(name, default) != default
    }
    if _value(model_key, CHAPTER) == OWN:
        chosen["config"] = _kept_config()
    return chosen if model_key in chosen else {}
