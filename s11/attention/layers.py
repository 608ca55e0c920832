"""The row-wise parts of a decoder layer."""

from collections.abc import Callable

import numpy as np

from .arrays import BoolArray, FloatArray


def rms_norm(rows: FloatArray, gain: FloatArray, *, eps: float) -> FloatArray:
    """Scale every row to root mean square 1, then by the gain (Zhang & Sennrich 2019).

    Args:
        rows: (..., d).
        gain: (d,).
        eps: added to the mean square.

    Returns:
        (..., d).
    """
    mean_square = np.mean(rows * rows, axis=-1, keepdims=True)  # (..., 1)
    normed: FloatArray = rows / np.sqrt(mean_square + np.float32(eps)) * gain
    return normed


def swiglu(
    rows: FloatArray,
    *,
    gate: FloatArray,
    up: FloatArray,
    down: FloatArray,
    product: Callable[[FloatArray, FloatArray], FloatArray] = np.matmul,
) -> FloatArray:
    """Return (silu(x gate) * (x up)) down, with silu(z) = z / (1 + exp(-z)) (Shazeer 2020).

    Args:
        rows: (..., d).
        gate: (d, f).
        up: (d, f).
        down: (f, d).
        product: how matrices are multiplied.

    Returns:
        (..., d).
    """
    gated = product(rows, gate)  # (..., f)
    return product(gated / (1 + np.exp(-gated)) * product(rows, up), down)


def masked_softmax(scores: FloatArray, visible: BoolArray) -> FloatArray:
    """Return the softmax over the visible entries of each row, 0 elsewhere.

    Args:
        scores: (..., p).
        visible: (..., p) bool, at least one True in each row.

    Returns:
        (..., p), rows sum to 1.
    """
    weights: FloatArray = np.where(visible, scores, np.float32(-np.inf))
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights
