"""How far two prefills are apart: in bits, in absolute value, in units in the last place."""

from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray, IntArray
from .chunks import PrefillResult


@dataclass(frozen=True, eq=False)
class KVComparison:
    """Distance of a candidate from its reference; each tuple has one entry per layer."""

    identical: bool
    max_abs_key_diff: tuple[float, ...]
    max_abs_value_diff: tuple[float, ...]
    max_ulp_key: tuple[int, ...]
    max_ulp_value: tuple[int, ...]
    last_hidden_max_abs_diff: float
    last_hidden_max_ulp: int
    key_abs_diff_by_position: FloatArray  # (l, p), largest over heads and dimensions
    value_abs_diff_by_position: FloatArray  # (l, p), largest over heads and dimensions

    @property
    def max_abs_diff(self) -> float:
        """The largest difference of any key, any value or the last hidden state; NaN if any is."""
        differences = self.max_abs_key_diff + self.max_abs_value_diff
        return float(np.max([*differences, self.last_hidden_max_abs_diff]))

    @property
    def max_ulp(self) -> int:
        """The largest distance of any key, any value or the last hidden state, in ulp."""
        return max(*self.max_ulp_key, *self.max_ulp_value, self.last_hidden_max_ulp)


def compare(reference: PrefillResult, candidate: PrefillResult) -> KVComparison:
    """Compare keys, values and last hidden state of two prefills of one prompt.

    `identical` means the same bits everywhere (0.0 and -0.0 differ) and no NaN.

    Raises:
        ValueError: results of different shapes.
    """
    for name in ("keys", "values", "last_hidden"):
        expected, got = getattr(reference, name).shape, getattr(candidate, name).shape
        if expected != got:
            raise ValueError(f"candidate.{name}: got shape {got}; allowed: {expected}")
    pairs = [
        (reference.keys, candidate.keys),
        (reference.values, candidate.values),
        (reference.last_hidden, candidate.last_hidden),
    ]
    key_diff = np.abs(candidate.keys - reference.keys).max(axis=(2, 3))  # (l, p)
    value_diff = np.abs(candidate.values - reference.values).max(axis=(2, 3))  # (l, p)
    key_ulp = ulp_distance(reference.keys, candidate.keys).max(axis=(1, 2, 3))  # (l,)
    value_ulp = ulp_distance(reference.values, candidate.values).max(axis=(1, 2, 3))  # (l,)
    hidden_diff = np.abs(candidate.last_hidden - reference.last_hidden)  # (d,)
    hidden_ulp = ulp_distance(reference.last_hidden, candidate.last_hidden)  # (d,)
    return KVComparison(
        identical=all(same_bits(left, right) for left, right in pairs),
        max_abs_key_diff=tuple(float(diff) for diff in key_diff.max(axis=1)),
        max_abs_value_diff=tuple(float(diff) for diff in value_diff.max(axis=1)),
        max_ulp_key=tuple(int(ulp) for ulp in key_ulp),
        max_ulp_value=tuple(int(ulp) for ulp in value_ulp),
        last_hidden_max_abs_diff=float(hidden_diff.max()),
        last_hidden_max_ulp=int(hidden_ulp.max()),
        key_abs_diff_by_position=key_diff,
        value_abs_diff_by_position=value_diff,
    )


def same_bits(left: FloatArray, right: FloatArray) -> bool:
    """Whether two float32 arrays have one shape, the same bits, and no NaN."""
    return (
        left.shape == right.shape
        and not np.isnan(left).any()
        and bool(np.array_equal(_bits(left), _bits(right)))
    )


def ulp_distance(left: FloatArray, right: FloatArray) -> IntArray:
    """Count the float32 values from one number to the other, element by element.

    The bits of a float32, read as a sign and a magnitude, order the floats as integers do, so
    the distance is a difference of integers (Dawson 2012, "Comparing Floating Point Numbers").
    0.0 and -0.0 are 0 apart; a NaN lies beyond the infinities.
    """
    distance: IntArray = np.abs(_ordered(left) - _ordered(right))
    return distance


def _bits(values: FloatArray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float32).view(np.int32)


def _ordered(values: FloatArray) -> IntArray:
    bits = _bits(values).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFF_FFFF))
