"""The exercises' pictures: what they show by value, and what they keep to themselves."""

import json

import numpy as np
import pytest

from s11.attention import Decoder, Fault, check_chunk_sizes
from s11.exercises_budget import BudgetNumbers, solve_budget
from s11.exercises_bug import CASES
from s11.exercises_target import TargetNumbers, solve_target, sweep_sizes
from s11.figures.exercises_budget import budget_alt, budget_columns, budget_figure, budget_steps
from s11.figures.exercises_bug import case_alt, case_figure
from s11.figures.exercises_target import target_alt, target_columns, target_curve, target_figure
from s11.figures.key_difference_info import Path, key_difference_info


@pytest.fixture(scope="module")
def solved():
    solution = solve_target(TargetNumbers(prompt_tokens=8_192, users=24, target_ms=50.0))
    return solution, sweep_sizes(solution)


def test_target_picture_marks_answer_and_prediction(solved):
    solution, points = solved
    curve = target_curve(solution, points, 3_000)
    assert curve.title == "2,488 tokens keep 50 ms"
    assert curve.yours_ms == pytest.approx(59.2)  # 5.2 + 0.018 * 3,000
    spec = target_figure(curve)
    assert spec["layout"]["meta"] == {
        "figure": "exercise-target", "best_tokens": 2_488, "yours": 3_000,
    }  # fmt: skip
    star = spec["data"][-1]
    assert (star["x"], star["y"]) == ([3_000], [pytest.approx(59.2)])
    at = target_columns(curve)["chunk_tokens"].index(1_024)
    assert spec["data"][0]["y"][at] == pytest.approx(23.632)
    assert spec["data"][1]["y"][at] == pytest.approx(189.056)
    assert "3,000 tokens: a full step of 59.2 ms" in target_alt(curve)
    lowest, highest = spec["layout"]["yaxis"]["range"]
    for trace in spec["data"]:
        assert all(10**lowest < value < 10**highest for value in trace["y"])


@pytest.mark.parametrize("yours", [None, 0, 8_193])
def test_target_picture_without_a_prediction_that_fits(solved, yours):
    solution, points = solved
    spec = target_figure(target_curve(solution, points, yours))
    assert len(spec["data"]) == 2
    assert spec["layout"]["meta"]["yours"] is None


def test_target_picture_reaches_a_small_prediction(solved):
    solution, points = solved
    spec = target_figure(target_curve(solution, points, 16))
    assert 10 ** spec["layout"]["xaxis"]["range"][0] < 16


def test_budget_picture_shows_first_steps():
    numbers = BudgetNumbers(prompt_tokens=32_768, users=128, budget_tokens=512)
    info = budget_steps(solve_budget(numbers))
    assert info.title == "Off: never. On: 86 steps"
    assert info.slices.tolist() == [384] * 40
    spec = budget_figure(info)
    assert spec["layout"]["xaxis"]["title"]["text"] == "step, first 40 of 86"
    off, on, prompt = spec["data"]
    assert off["y"].tolist() == on["y"].tolist() == [128] * 40
    assert np.array_equal(prompt["y"] + on["y"], [512] * 40)
    assert "up to 384 prompt tokens" in budget_alt(info)


def test_budget_picture_of_few_steps_is_padded_with_decodes():
    numbers = BudgetNumbers(prompt_tokens=16_384, users=8, budget_tokens=8_192)
    info = budget_steps(solve_budget(numbers))
    # 8,192 - 8 = 8,184: two full steps and a rest of 16.
    assert info.slices.tolist() == [8_184, 8_184, 16, 0, 0]
    columns = budget_columns(info)
    assert columns["step"] == [1, 2, 3, 4, 5]
    assert columns["prompt_tokens_chunking_off"] == [0] * 5
    assert budget_figure(info)["layout"]["xaxis"]["title"]["text"] == "step"


def test_bug_picture_keeps_the_bugs_name_to_itself():
    decoder = Decoder()
    for case, fault in CASES.items():
        (check,) = check_chunk_sizes(tokens=128, chunk_sizes=[48], decoder=decoder, fault=fault)
        info = key_difference_info(check, path=Path.TILES)
        spec = case_figure(info, case)
        told = json.dumps(spec["layout"]) + case_alt(info, case)
        assert f"Case {case}: where the keys differ" in told
        assert "3 chunks of 48 tokens, the last of 32" in told
        for name in Fault:
            assert str(name) not in told
