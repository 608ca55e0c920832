import numpy as np
import pytest

from s11.attention import PrefillResult, compare, same_bits, ulp_distance


def f32(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1.0, 1.0, 0),
        (1.0, np.nextafter(np.float32(1), np.float32(2)), 1),
        (1.0, np.nextafter(np.float32(1), np.float32(0)), 1),
        (1.0, 2.0, 2**23),  # a binade has 2 ** 23 floats
        (-1.0, -4.0, 2**24),
        (0.0, -0.0, 0),
        (0.0, 1e-45, 1),  # the smallest subnormal, 2 ** -149
        (-1e-45, 1e-45, 2),
        (-1.0, 1.0, 2 * 127 * 2**23),  # 1.0 is 0x3F800000 = 127 << 23
        (-np.inf, np.inf, 2 * 255 * 2**23),
        (3.4028235e38, np.inf, 1),
    ],
)
def test_ulp_distance_counts_the_floats_between(left, right, expected):
    assert ulp_distance(f32(left), f32(right)).tolist() == [expected]
    assert ulp_distance(f32(right), f32(left)).tolist() == [expected]


def test_ulp_distance_keeps_the_shape():
    assert ulp_distance(np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)).shape == (2, 3)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (f32(1, 2), f32(1, 2), True),
        (f32(1, 2), f32(1, np.nextafter(np.float32(2), np.float32(3))), False),
        (f32(0.0), f32(-0.0), False),
        (f32(np.nan), f32(np.nan), False),
        (f32(np.inf), f32(np.inf), True),
        (f32(1, 2), f32(1), False),
    ],
)
def test_same_bits(left, right, expected):
    assert same_bits(left, right) is expected


def result(layers=2, positions=3):
    shape = (layers, positions, 2, 2)
    values = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    return PrefillResult((positions,), values, -values, f32(1, 2))


def test_compare_with_itself_is_identical():
    comparison = compare(result(), result())
    assert comparison.identical
    assert comparison.max_abs_key_diff == comparison.max_abs_value_diff == (0.0, 0.0)
    assert comparison.max_ulp_key == comparison.max_ulp_value == (0, 0)
    assert (comparison.last_hidden_max_abs_diff, comparison.last_hidden_max_ulp) == (0.0, 0)
    assert (comparison.max_abs_diff, comparison.max_ulp) == (0.0, 0)
    assert not comparison.key_abs_diff_by_position.any()


def test_compare_finds_layer_and_position():
    changed = result()
    changed.keys[1, 2, 0, 1] -= 0.5
    changed.keys[1, 2, 1, 1] += 0.25
    changed.values[0, 1, 1, 0] += 2
    changed.last_hidden[1] = np.nextafter(np.float32(2), np.float32(3))
    comparison = compare(result(), changed)
    assert not comparison.identical
    assert comparison.max_abs_key_diff == (0.0, 0.5)
    assert comparison.max_abs_value_diff == (2.0, 0.0)
    assert comparison.key_abs_diff_by_position.tolist() == [[0, 0, 0], [0, 0, 0.5]]
    assert comparison.value_abs_diff_by_position.tolist() == [[0, 2, 0], [0, 0, 0]]
    # In 16..32 a float is 2 ** -19 wide: 22 - 0.5 is 2 ** 18 floats away. In 4..8, 2 ** -21:
    # -7 + 2 = -5 is 2 ** 22 away. Above 2 the next float is 2 ** -22 away.
    assert comparison.max_ulp_key == (0, 2**18)
    assert comparison.max_ulp_value == (2**22, 0)
    assert comparison.last_hidden_max_ulp == 1
    assert comparison.last_hidden_max_abs_diff == 2**-22
    assert (comparison.max_abs_diff, comparison.max_ulp) == (2.0, 2**22)


@pytest.mark.parametrize("name", ["keys", "values", "last_hidden"])
@pytest.mark.parametrize("value", [np.nan, -0.0])
def test_compare_trusts_bits(name, value):
    reference, changed = result(), result()
    getattr(reference, name).flat[1] = 0.0 if value == 0 else value
    getattr(changed, name).flat[1] = value
    comparison = compare(reference, changed)
    assert not comparison.identical
    assert np.isnan(comparison.max_abs_diff) == np.isnan(value)


def test_compare_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"candidate\.keys: got shape \(2, 4, 2, 2\); allowed:"):
        compare(result(), result(positions=4))
