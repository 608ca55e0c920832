"""Array types, the letters that name an axis, and the checks at the edge of the package.

A shape stands at the right margin. One letter, one meaning, everywhere in `s11.attention`:

    n  tokens of one step, flattened        s  slices of one step (one per request in it)
    g  tiles of one step                    t  slots of one tile (`TILE_TOKENS`)
    p  positions held by one KV cache       b  key blocks of `t` positions
    l  layers      d  hidden size           f  feed-forward size      v  vocabulary
    h  query heads k  KV heads              r  query heads per KV head (h / k)
    e  head dimension
"""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

T = TypeVar("T")


def checked_count(field: str, value: object, *, low: int = 1, high: int | None = None) -> int:
    """Return `value` as an int within `low`..`high` (no upper end where `high` is None).

    Raises:
        ValueError: not an integer, or out of range; names the field, the value and the range.
    """
    allowed = f"an integer of at least {low}" if high is None else f"an integer in {low}..{high}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{field}: got {value!r}; allowed: {allowed}")
    if value < low or (high is not None and value > high):
        raise ValueError(f"{field}: got {value}; allowed: {allowed}")
    return int(value)


def checked_tokens(field: str, tokens: ArrayLike, *, vocab_size: int) -> IntArray:
    """Return token ids as a one-dimensional int64 array of at least one id below `vocab_size`.

    Raises:
        ValueError: another shape or type, no token, or an id outside the vocabulary.
    """
    array = np.asarray(tokens)
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"{field}: got {array.dtype} of shape {array.shape}; "
            "allowed: a one-dimensional array of at least one integer token id"
        )
    for token in (array.min(), array.max()):
        if not 0 <= token < vocab_size:
            raise ValueError(f"{field}: got token id {token}; allowed: 0..{vocab_size - 1}")
    return array.astype(np.int64)


def checked_members(field: str, values: Iterable[T], *, known: Iterable[T]) -> frozenset[T]:
    """Return `values` as a set, all of which are among `known`.

    Raises:
        ValueError: a value that is not known.
    """
    members, allowed = frozenset(values), list(known)
    for value in members.difference(allowed):
        raise ValueError(f"{field}: got {value!r}; allowed: any of {allowed}")
    return members
