"""Rotary position embedding (Su et al. 2021, "RoFormer", section 3.4.2)."""

import numpy as np

from .arrays import FloatArray, IntArray


def rope_tables(
    positions: IntArray, *, head_dim: int, theta: float
) -> tuple[FloatArray, FloatArray]:
    """Return cosine and sine of every position's angles: position * theta ** (-2i / head_dim).

    The angles are taken in float64: a float32 product loses the phase at long positions.

    Args:
        positions: (...) absolute positions.
        head_dim: even.
        theta: base of the frequencies.

    Returns:
        Two arrays (..., head_dim / 2).
    """
    frequencies = theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)  # (e/2,)
    angles = positions[..., None] * frequencies  # (..., e/2)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def apply_rope(heads: FloatArray, cosines: FloatArray, sines: FloatArray) -> FloatArray:
    """Rotate every pair (2i, 2i + 1) of every head by its position's i-th angle.

    Args:
        heads: (..., heads, e).
        cosines: (..., e / 2).
        sines: (..., e / 2).

    Returns:
        (..., heads, e).
    """
    even, odd = heads[..., 0::2], heads[..., 1::2]  # (..., heads, e/2)
    cosines, sines = cosines[..., None, :], sines[..., None, :]  # (..., 1, e/2)
    rotated = np.empty_like(heads)  # (..., heads, e)
    rotated[..., 0::2] = even * cosines - odd * sines
    rotated[..., 1::2] = even * sines + odd * cosines
    return rotated
