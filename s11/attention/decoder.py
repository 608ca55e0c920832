"""A real small decoder: its shape, its seeded float32 weights."""

import math
from dataclasses import dataclass, fields

import numpy as np

from .arrays import FloatArray, checked_count
from .kv_cache import KVCache


@dataclass(frozen=True)
class DecoderConfig:
    """Shape and seed of a decoder. The default: 0.6 million weights, quick on one core.

    Raises:
        ValueError: a field outside its range, an odd head_dim, or query heads that KV heads
            do not divide.
    """

    vocab_size: int = 512
    hidden_size: int = 128
    layers: int = 3
    query_heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    ffn_size: int = 256
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("rope_theta", "norm_eps"):
                if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                    raise ValueError(f"{field.name}: got {value!r}; allowed: a number above 0")
            else:
                low = {"seed": 0, "vocab_size": 2}.get(field.name, 1)
                checked_count(field.name, value, low=low)
        if self.head_dim % 2:
            raise ValueError(f"head_dim: got {self.head_dim}; allowed: an even integer (RoPE)")
        if self.query_heads % self.kv_heads:
            raise ValueError(
                f"query_heads: got {self.query_heads}; allowed: a multiple of "
                f"kv_heads ({self.kv_heads})"
            )


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """The weights of one layer."""

    attention_norm: FloatArray  # (d,)
    query: FloatArray  # (d, h * e)
    key: FloatArray  # (d, k * e)
    value: FloatArray  # (d, k * e)
    output: FloatArray  # (h * e, d)
    ffn_norm: FloatArray  # (d,)
    gate: FloatArray  # (d, f)
    up: FloatArray  # (d, f)
    down: FloatArray  # (f, d)


class Decoder:
    """A decoder-only transformer with grouped-query attention (Ainslie et al. 2023).

    Matrices are normal with variance 1 / rows, so that every product keeps its input's scale;
    norm gains are normal around 1. Weights are read-only: one decoder may serve many threads.
    """

    def __init__(self, config: DecoderConfig | None = None) -> None:
        self.config = config or DecoderConfig()
        rng = np.random.default_rng(self.config.seed)

        def matrix(rows: int, columns: int) -> FloatArray:
            drawn = rng.standard_normal((rows, columns)) / math.sqrt(rows)
            return _read_only(drawn)

        def gain() -> FloatArray:
            return _read_only(1 + 0.1 * rng.standard_normal(self.config.hidden_size))

        c = self.config
        query_width, kv_width = c.query_heads * c.head_dim, c.kv_heads * c.head_dim
        self.embedding: FloatArray = _read_only(
            rng.standard_normal((c.vocab_size, c.hidden_size))
        )  # (v, d)
        self.layers = tuple(
            LayerWeights(
                attention_norm=gain(),
                query=matrix(c.hidden_size, query_width),
                key=matrix(c.hidden_size, kv_width),
                value=matrix(c.hidden_size, kv_width),
                output=matrix(query_width, c.hidden_size),
                ffn_norm=gain(),
                gate=matrix(c.hidden_size, c.ffn_size),
                up=matrix(c.hidden_size, c.ffn_size),
                down=matrix(c.ffn_size, c.hidden_size),
            )
            for _ in range(c.layers)
        )
        self.final_norm = gain()  # (d,)
        self.unembedding = matrix(c.hidden_size, c.vocab_size)  # (d, v)

    def new_cache(self) -> KVCache:
        """Return an empty KV cache of this decoder's shape."""
        return KVCache(
            layers=self.config.layers,
            kv_heads=self.config.kv_heads,
            head_dim=self.config.head_dim,
        )


def _read_only(drawn: np.ndarray) -> FloatArray:
    weights: FloatArray = drawn.astype(np.float32)
    weights.flags.writeable = False
    return weights
