"""The keys and values of one request."""

from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray

TILE_TOKENS = 64
"""Positions in one tile and in one key block. The design's T."""


class KVCache:
    """Keys and values of one request, per layer, by absolute position.

    Room grows by doubling, in whole key blocks. Rows past `tokens` are zero, always: a masked
    key weighs 0, and 0 times a stale NaN would be NaN.
    """

    def __init__(self, *, layers: int, kv_heads: int, head_dim: int) -> None:
        self.tokens = 0
        self._keys: FloatArray = np.zeros((layers, 0, kv_heads, head_dim), np.float32)
        self._values: FloatArray = np.zeros((layers, 0, kv_heads, head_dim), np.float32)

    @property
    def keys(self) -> FloatArray:
        """(l, p, k, e) view of the keys held."""
        return self._keys[:, : self.tokens]

    @property
    def values(self) -> FloatArray:
        """(l, p, k, e) view of the values held."""
        return self._values[:, : self.tokens]

    def extend(self, tokens: int) -> int:
        """Make room for `tokens` more positions and return the first of them."""
        start, self.tokens = self.tokens, self.tokens + tokens
        held_room = self._keys.shape[1]
        if self.tokens > held_room:
            room = max(2 * held_room, -(-self.tokens // TILE_TOKENS) * TILE_TOKENS)
            self._keys = _grown(self._keys, room)
            self._values = _grown(self._values, room)
        return start

    def write(self, layer: int, start: int, keys: FloatArray, values: FloatArray) -> None:
        """Store the keys and values of one layer, (n, k, e) each, from position `start` on."""
        end = start + len(keys)
        assert end <= self.tokens, (end, self.tokens)
        self._keys[layer, start:end] = keys
        self._values[layer, start:end] = values

    def forget(self) -> None:
        """Zero every key and value held, as the fault `cache-not-appended` does."""
        self.keys[:] = 0
        self.values[:] = 0

    def key_blocks(self, layer: int, blocks: int) -> FloatArray:
        """(b, t, k, e) view of the first `blocks` blocks of one layer's keys."""
        return _blocks(self._keys[layer], blocks)

    def value_blocks(self, layer: int, blocks: int) -> FloatArray:
        """(b, t, k, e) view of the first `blocks` blocks of one layer's values."""
        return _blocks(self._values[layer], blocks)


@dataclass(frozen=True, eq=False)
class SharedPrefix:
    """The first `tokens` positions of one cache that another takes over: a prefix-cache hit."""

    source: KVCache
    target: KVCache
    tokens: int

    def copy(self, layer: int) -> None:
        """Copy the keys and values of one layer, bit by bit."""
        assert self.tokens <= self.source.tokens, (self.tokens, self.source.tokens)
        keys, values = self.source.keys[layer], self.source.values[layer]  # (p, k, e)
        self.target.write(layer, 0, keys[: self.tokens], values[: self.tokens])


def _grown(held: FloatArray, room: int) -> FloatArray:
    layers, positions, kv_heads, head_dim = held.shape
    grown = np.zeros((layers, room, kv_heads, head_dim), np.float32)
    grown[:, :positions] = held
    return grown


def _blocks(rows: FloatArray, blocks: int) -> FloatArray:
    return rows[: blocks * TILE_TOKENS].reshape(blocks, TILE_TOKENS, *rows.shape[1:])
