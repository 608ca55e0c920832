"""One forward pass over one ragged batch: the slices of a step, flattened."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray, IntArray
from .attend import plain_attention, tile_bias, tiled_attention
from .decoder import Decoder
from .faults import Fault
from .kv_cache import TILE_TOKENS, KVCache, SharedPrefix
from .layers import rms_norm, swiglu
from .rope import apply_rope, rope_tables
from .tiles import Span, plain_layout, tile_product, tiled_layout


@dataclass(frozen=True, eq=False)
class Slice:
    """The next tokens of one request: a chunk of its prompt, or one token to decode."""

    cache: KVCache
    tokens: IntArray  # (n,)


def forward(
    slices: Sequence[Slice],
    *,
    decoder: Decoder,
    tiled: bool,
    shared: Sequence[SharedPrefix] = (),
    faults: Set[Fault] = frozenset(),
) -> FloatArray:
    """Compute the slices of one step in one pass and append their keys and values.

    A shared prefix is copied layer by layer, after the slices' own keys and values are written
    and before anyone attends: its source may be computed in this very step.

    Cost: every product runs over the rows of the step; the tiled path rounds each slice up to
    whole tiles of 64 rows, so a decode costs as much as a chunk of 64.

    Args:
        slices: at least one, of different requests.
        decoder: the weights.
        tiled: aligned tiles (same bits whatever the batch) or plain products.
        shared: prefixes that empty caches of this step take over before their slices; one whose
            source takes over a prefix too comes after that one.
        faults: bugs to switch on.

    Returns:
        (s, d): the final hidden state of each slice's last token.
    """
    if Fault.CACHE_NOT_APPENDED in faults:
        for part in slices:
            part.cache.forget()
    for prefix in shared:
        start = prefix.target.extend(prefix.tokens)
        assert start == 0, start
    if Fault.CACHE_NOT_APPENDED in faults:
        shared = ()  # the first chunk replaces a shared prefix as it replaces any cached key
    caches = [part.cache for part in slices]
    starts = [part.cache.extend(len(part.tokens)) for part in slices]
    spans = [Span(start, cache.tokens) for start, cache in zip(starts, caches, strict=True)]
    first_rows = np.cumsum([0] + [span.end - span.start for span in spans])  # (s + 1,)
    layout = tiled_layout(spans) if tiled else plain_layout(spans)
    product = tile_product if tiled else np.matmul

    biases = [tile_bias(tile, spans[tile.slice_index], faults=faults) for tile in layout.tiles]

    config = decoder.config
    tokens = np.concatenate([part.tokens for part in slices])  # (n,)
    hidden: FloatArray = layout.scatter(decoder.embedding[tokens])  # (g, t, d)
    cosines, sines = rope_tables(
        layout.scatter(_rope_positions(spans, faults)),
        head_dim=config.head_dim,
        theta=config.rope_theta,
    )  # (g, t, e/2)

    def heads(rows: FloatArray) -> FloatArray:
        return rows.reshape(*rows.shape[:2], -1, config.head_dim)

    for layer, weights in enumerate(decoder.layers):
        normed = rms_norm(hidden, weights.attention_norm, eps=config.norm_eps)  # (g, t, d)
        queries = apply_rope(heads(product(normed, weights.query)), cosines, sines)  # (g, t, h, e)
        keys = layout.gather(
            apply_rope(heads(product(normed, weights.key)), cosines, sines)
        )  # (n, k, e)
        values = layout.gather(heads(product(normed, weights.value)))  # (n, k, e)
        for cache, span, row in zip(caches, spans, first_rows, strict=False):
            rows = slice(row, row + span.end - span.start)
            cache.write(layer, span.start, keys[rows], values[rows])
        for prefix in shared:
            prefix.copy(layer)
        if tiled:
            attended = tiled_attention(
                queries, layer, layout=layout, caches=caches, biases=biases
            )  # (g, t, h, e)
        else:
            attended = plain_attention(queries, layer, caches=caches, spans=spans, faults=faults)
        joined = attended.reshape(*hidden.shape[:2], -1)  # (g, t, h*e)
        hidden = hidden + product(joined, weights.output)  # (g, t, d)
        normed = rms_norm(hidden, weights.ffn_norm, eps=config.norm_eps)  # (g, t, d)
        hidden = hidden + swiglu(
            normed, gate=weights.gate, up=weights.up, down=weights.down, product=product
        )

    final: FloatArray = rms_norm(hidden, decoder.final_norm, eps=config.norm_eps)  # (g, t, d)
    last_hidden: FloatArray = layout.gather(final)[first_rows[1:] - 1]  # (s, d)
    return last_hidden


def greedy_tokens(last_hidden: FloatArray, *, decoder: Decoder) -> IntArray:
    """Return the most likely next token of each row; the lowest id where two are equal.

    Each row stands alone in slot 0 of a tile, so its logits do not depend on the others.

    Args:
        last_hidden: (s, d).
        decoder: the weights.

    Returns:
        (s,) token ids.
    """
    rows, hidden_size = last_hidden.shape
    tiles = np.zeros((rows, TILE_TOKENS, hidden_size), np.float32)  # (s, t, d)
    tiles[:, 0] = last_hidden
    logits = tile_product(tiles, decoder.unembedding)[:, 0]  # (s, v)
    tokens: IntArray = np.argmax(logits, axis=-1)  # (s,)
    return tokens


def _rope_positions(spans: Sequence[Span], faults: Set[Fault]) -> IntArray:
    relative = Fault.CHUNK_RELATIVE_POSITIONS in faults
    positions: IntArray = np.concatenate(
        [np.arange(span.start, span.end) - (span.start if relative else 0) for span in spans]
    )  # (n,)
    return positions
