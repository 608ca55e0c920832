import cmath
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.attention.rope import apply_rope, rope_tables


def rotated(heads, positions, theta=10_000.0):
    heads = np.asarray(heads, np.float32)
    cosines, sines = rope_tables(np.asarray(positions), head_dim=heads.shape[-1], theta=theta)
    return apply_rope(heads, cosines, sines)


def test_a_pair_at_position_p_is_turned_by_p_radians():
    # head_dim 2 has the one frequency theta ** 0 = 1: (1, 0) turns to (cos p, sin p).
    turned = rotated([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 2.0]]], [0, 3, 1])
    assert turned[0].tolist() == [[1.0, 0.0]]
    assert turned[1, 0] == pytest.approx([-0.98999250, 0.14112001], abs=1e-6)  # cos 3, sin 3
    assert turned[2, 0] == pytest.approx([-1.68294197, 1.08060461], abs=1e-6)  # -2 sin 1, 2 cos 1


def test_pairs_are_neighbours_and_the_second_turns_slower():
    # head_dim 4, theta 10,000: frequencies 1 and 10,000 ** (-2/4) = 0.01. The paper's pairs are
    # (0, 1) and (2, 3), as complex numbers times exp(i * position * frequency).
    turned = rotated([[[1.0, 2.0, 3.0, 4.0]]], [50])[0, 0]
    first, second = (1 + 2j) * cmath.exp(50j), (3 + 4j) * cmath.exp(0.5j)
    expected = [first.real, first.imag, second.real, second.imag]
    assert turned == pytest.approx(expected, abs=1e-6)


def test_long_positions_keep_their_phase():
    cosines, sines = rope_tables(np.array([131_071]), head_dim=4, theta=10_000.0)
    expected = [math.cos(131_071), math.cos(1_310.71), math.sin(131_071), math.sin(1_310.71)]
    assert [*cosines[0], *sines[0]] == pytest.approx(expected, abs=1e-7)


vectors = st.lists(st.floats(-3, 3, width=32), min_size=8, max_size=8)


@given(vectors, vectors, st.integers(0, 200), st.integers(0, 200), st.integers(0, 2_000))
def test_scores_depend_on_the_distance_alone(query, key, query_at, key_at, shift):
    here = rotated([[query]], [query_at])[0, 0] @ rotated([[key]], [key_at])[0, 0]
    there = rotated([[query]], [query_at + shift])[0, 0] @ rotated([[key]], [key_at + shift])[0, 0]
    assert there == pytest.approx(here, abs=1e-4)


@given(vectors, st.integers(0, 100_000))
def test_rotation_keeps_length(vector, position):
    length = np.linalg.norm(np.float32(vector))
    assert np.linalg.norm(rotated([[vector]], [position])) == pytest.approx(length, abs=1e-5)
