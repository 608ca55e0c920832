"""The catalog's models: what a decoder's config.json says, and what follows from it.

The dimensions lie in models.csv, each row with the Hugging Face repository whose config.json
says so. Qwen-72B's config.json gives twice the MLP's width (49,152), as its code halves it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from s11.catalog.source import Source
from s11.checks import require_bool, require_int

MOST = {
    "layers": 1_000,
    "hidden": 131_072,
    "ffn": 1_048_576,
    "heads": 1_024,
    "kv_heads": 1_024,
    "head_dim": 4_096,
    "vocab": 4_194_304,
    "max_positions": 2**31,
}
SWITCHES = ("gated", "tied_embeddings", "parallel_attention", "learned_positions")
MAX_NAME_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A dense decoder-only transformer's dimensions.

    name, title: for programs and for people; neither title nor sources tell models apart.
    hidden: the residual stream's width. ffn: the MLP's inner width.
    heads, kv_heads: query heads; key/value heads (fewer: grouped-query attention).
    head_dim: width of one head; heads * head_dim need not be `hidden`.
    gated: the MLP has three products (gate, up, down), not two.
    tied_embeddings: the LM head is the embedding table.
    max_positions: the longest sequence the model was made for, in tokens.
    parallel_attention: attention and MLP read the same normed input (one norm a layer).
    learned_positions: a table of position vectors, where others rotate or add nothing.

    Raises:
        ValueError: a name that is none, a dimension out of range, or heads that the KV heads
            do not divide.
    """

    name: str
    title: str = field(compare=False)
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    gated: bool
    vocab: int
    tied_embeddings: bool
    max_positions: int
    parallel_attention: bool = False
    learned_positions: bool = False
    sources: tuple[Source, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        for label in ("name", "title"):
            text = getattr(self, label)
            if not isinstance(text, str) or not 1 <= len(text) <= MAX_NAME_CHARACTERS:
                raise ValueError(f"{label}: not a text of 1 to {MAX_NAME_CHARACTERS} characters")
        for dimension, most in MOST.items():
            whole = require_int(dimension, getattr(self, dimension), 1, most)
            object.__setattr__(self, dimension, whole)
        for switch in SWITCHES:
            object.__setattr__(self, switch, require_bool(switch, getattr(self, switch)))
        if self.heads % self.kv_heads:
            raise ValueError(
                f"kv_heads: {self.kv_heads} (allowed: a divisor of the {self.heads} heads)"
            )

    @property
    def q_width(self) -> int:
        """Return the width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Return the width of all key heads together, which is that of the values too."""
        return self.kv_heads * self.head_dim

    @property
    def mlp_products(self) -> int:
        """Return how many weight matrices an MLP has: 3 where gated, else 2."""
        return 3 if self.gated else 2

    def layer_linear_parameters(self) -> int:
        """Return the weights in one layer's products: q, k, v, out and the MLP's."""
        attention = 2 * self.hidden * (self.q_width + self.kv_width)
        return attention + self.mlp_products * self.hidden * self.ffn

    def embedding_parameters(self) -> int:
        """Return the weights of embedding table, LM head (where it is its own) and positions."""
        rows = self.vocab if self.tied_embeddings else 2 * self.vocab
        rows += self.max_positions if self.learned_positions else 0
        return rows * self.hidden

    def norm_parameters(self) -> int:
        """Return the gains of the layers' norms and of the last one."""
        norms_a_layer = 1 if self.parallel_attention else 2
        return (norms_a_layer * self.layers + 1) * self.hidden

    def parameters(self) -> int:
        """Return all weights, biases and norms inside a head left out (0.1% or less)."""
        linear = self.layers * self.layer_linear_parameters()
        return linear + self.embedding_parameters() + self.norm_parameters()

    def kv_bytes_per_token(self) -> int:
        """Return the bytes of one token's keys and values in 16 bits, all layers and heads."""
        return 2 * self.layers * self.kv_width * 2


def _rows() -> Iterator[tuple[Model, bool]]:
    """Yield each model of models.csv, and whether the pages list it."""
    text = resources.files("s11.catalog").joinpath("models.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        repository = row["repository"]
        address = f"https://huggingface.co/{repository}/blob/main/config.json"
        numbers: dict[str, Any] = {dimension: int(row[dimension]) for dimension in MOST}
        numbers |= {switch: row[switch] == "yes" for switch in SWITCHES if switch in row}
        model = Model(
            name=row["name"],
            title=row["title"],
            sources=(Source(f"{repository}, config.json", address, (*MOST, *SWITCHES)),),
            **numbers,
        )
        yield model, row["listed"] == "yes"


_ROWS = tuple(_rows())
KNOWN_MODELS = {model.name: model for model, _ in _ROWS}
MODELS = {model.name: model for model, listed in _ROWS if listed}

_ENDINGS = re.compile(r"(-(hf|chat|instruct|base|python|fp8|dynamic|bf16|v0\.[1-9]|[0-9]{4}))+$")


def model_of_measured(name: str) -> Model:
    """Return the model that a measured table or a repository means by a name.

    Case, the owner before a slash, and endings such as "-hf", "-Instruct", "-v0.1" and "-FP8"
    do not matter: they change weights, not dimensions.

    Raises:
        ValueError: no model known here.
    """
    spelled = name.strip().lower().rsplit("/", 1)[-1] if isinstance(name, str) else ""
    spelled = spelled.replace("_", "-").replace(" ", "-")
    spelled = _ENDINGS.sub("", spelled.removeprefix("meta-"))
    spelled = re.sub(r"^llama(?=[23])", "llama-", spelled)
    if spelled not in KNOWN_MODELS:
        raise ValueError(f"model: {name!r:.60} is not known (allowed: {', '.join(KNOWN_MODELS)})")
    return KNOWN_MODELS[spelled]
