import numpy as np
import pytest

from s11.attention.layers import masked_softmax, rms_norm, swiglu


def f32(*values):
    return np.array(values, np.float32)


def test_rms_norm_by_hand():
    # Mean square of (3, 4) is 12.5, its root 3.5355339; gains 1 and 10.
    normed = rms_norm(f32([3, 4], [0, 0]), f32(1, 10), eps=1e-12)
    assert normed[0] == pytest.approx([0.84852814, 11.3137085], rel=1e-6)
    assert normed[1].tolist() == [0, 0]


def test_rms_norm_adds_eps_to_the_mean_square():
    # (3 ** 2 + 4 ** 2) / 2 + 3.5 = 16, its root 4.
    assert rms_norm(f32([3, 4]), f32(1, 1), eps=3.5)[0] == pytest.approx([0.75, 1.0], rel=1e-6)


def test_swiglu_by_hand():
    # x = 1, gate 2, up 3, down 0.5: silu(2) = 2 / (1 + e^-2) = 1.76159416; times 3, times 0.5.
    result = swiglu(f32([1]), gate=f32([2]), up=f32([3]), down=f32([0.5]))
    assert result.shape == (1, 1)
    assert result[0, 0] == pytest.approx(2.64239124, rel=1e-6)


def test_swiglu_gates_only_the_gate():
    # silu(-2) = -2 / (1 + e^2) = -0.23840584, times the ungated -3.
    result = swiglu(f32([-1]), gate=f32([2]), up=f32([3]), down=f32([1]))
    assert result[0, 0] == pytest.approx(0.71521753, rel=1e-6)


def test_masked_softmax_by_hand():
    # exp gives 1, 2, 5; without the second: 1/6, 5/6. All visible: 1/8, 2/8, 5/8.
    scores = np.log(f32([1, 2, 5], [1, 2, 5]))
    softmax = masked_softmax(scores, np.array([[True, False, True], [True, True, True]]))
    assert softmax[0] == pytest.approx([1 / 6, 0, 5 / 6], abs=1e-6)
    assert softmax[0, 1] == 0
    assert softmax[1] == pytest.approx([0.125, 0.25, 0.625], abs=1e-6)


def test_masked_softmax_survives_large_scores():
    # e ** 1000 overflows; relative to the largest visible score, 0 and -log 3 do not.
    scores = f32([1000, 1000 - np.log(3), 5000])
    softmax = masked_softmax(scores, np.array([[True, True, False]]))
    assert softmax[0] == pytest.approx([0.75, 0.25, 0], abs=1e-4)
