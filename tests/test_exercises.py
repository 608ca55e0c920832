"""The exercises: how predictions are judged, and solutions against hand and closed form."""

import itertools
import math
from fractions import Fraction

import pytest

from s11.attention import Decoder, Fault, check_chunk_sizes
from s11.exercises import Quantity, Slip, decimals, judge, shown, typed_number
from s11.exercises_budget import BudgetNumbers, budget_exercise, solve_budget
from s11.exercises_bug import CASES, BugNumbers, bug_exercise, solve_bug
from s11.exercises_target import (
    TargetNumbers,
    solve_target,
    sweep_sizes,
    target_exercise,
)
from s11.quiz import ANSWERS

FIXED, PER_TOKEN, PER_DECODE = Fraction(4), Fraction(18, 1000), Fraction(5, 100)


def quantity(exercise, name):
    return next(each for each in exercise.quantities if each.name == name)


def slips(exercise, name):
    return [slip.value for slip in quantity(exercise, name).slips]


# How predictions are judged


def test_a_prediction_is_right_exactly_or_near_enough():
    chunk = Quantity(name="c", label="", unit="tokens", answer=2_488, tolerance=0.005)
    assert judge(chunk, 2_488) == judge(chunk, 2_488.0)
    assert judge(chunk, 2_488).right
    assert judge(chunk, 2_488).sentence == "2,488 tokens."
    assert judge(chunk, 2_480).sentence == "near enough to 2,488 tokens."
    assert not judge(chunk, 2_475).right  # 0.52% below


def test_what_is_forgotten_is_named_and_the_answer_is_not():
    asked = Quantity(
        name="c",
        label="",
        unit="ms",
        answer=50.0,
        tolerance=0.005,
        never_above="over the target.",
        slips=(Slip(60.0, "the decodes."), Slip(50.1, "never said: as near as the answer.")),
    )
    assert judge(asked, 60.2).sentence == "the decodes."
    assert judge(asked, 50.1).sentence == "over the target."
    assert judge(asked, 75.0).sentence == "too large, by 50% of the right value."
    assert judge(asked, 25.0).sentence == "too small, by 50% of the right value."
    assert judge(asked, 49.6).sentence == "a little too small."
    for typed in (60.2, 50.1, 75.0, 25.0, 49.6):
        assert not judge(asked, typed).right
        assert "50 ms" not in judge(asked, typed).sentence


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (0, "too small, by 100% of the right value."),
        (499, "too large, by 898% of the right value."),  # 449 / 50
        (500, "too large: about 10 times the right value."),
        (50_000, "too large: about 1,000 times the right value."),
        (50_001, "more than a thousand times too large."),
        (1e9, "more than a thousand times too large."),
    ],
)
def test_what_is_far_off_is_told_in_words_that_can_be_read(typed, sentence):
    asked = Quantity(name="c", label="", unit="tokens", answer=50)
    assert judge(asked, typed).sentence == sentence


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2488", 2_488), (" 2,488 ", 2_488), ("1e9", 1_000_000_000), ("1,000,000,000", 1e9),
        ("0", 0), ("2.488e3", 2_488), ("", None), ("  ", None),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(text, value):
    for unit in ("tokens", "ms"):
        asked = Quantity(name="c", label="Chunk", unit=unit, answer=1)
        assert typed_number(asked, text) == value


@pytest.mark.parametrize(
    "text",
    [
        "-1", "1000000001", "2e9", "nan", "inf", "1e400", "24,88", "2,4880", "twelve", "1 2",
    ],
)  # fmt: skip
def test_what_is_no_number_of_the_range_is_refused(text):
    chunk = Quantity(name="c", label="Largest chunk", unit="tokens", answer=1)
    with pytest.raises(ValueError, match=f"^Largest chunk: “{text}” is not a whole number from 0 "
                                         "to 1,000,000,000$"):  # fmt: skip
        typed_number(chunk, text)
    with pytest.raises(ValueError, match="is not a number from 0 to 1,000,000,000"):
        typed_number(Quantity(name="c", label="TTFT", unit="ms", answer=1), text)


def test_a_count_is_whole_and_a_time_need_not_be():
    with pytest.raises(ValueError, match=r"“2\.5” is not a whole number"):
        typed_number(Quantity(name="c", label="Chunk", unit="tokens", answer=1), "2.5")
    assert typed_number(Quantity(name="c", label="Stall", unit="ms", answer=1), "2.5") == 2.5


def test_nothing_is_a_right_answer_too():
    none = Quantity(name="c", label="", unit="tokens", answer=0)
    assert judge(none, 0).sentence == "0 tokens."
    assert judge(none, 1).sentence == "too many."


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1, "tokens", "1 token"),
        (32_768, "tokens", "32,768 tokens"),
        (1_484.224, "ms", "1,484.224 ms"),
        (50.0, "ms", "50 ms"),
        (0, "positions", "0 positions"),
    ],
)
def test_values_are_shown_with_their_unit(value, unit, text):
    assert shown(value, unit) == text


def test_decimals_drop_trailing_zeros():
    assert [decimals(value) for value in (72.8, 4, 0.05, 1_000, 662.6241)] == [
        "72.8", "4", "0.05", "1,000", "662.624",
    ]  # fmt: skip


# The largest chunk within a target


def test_target_exercise_by_hand():
    # 50 - 4 - 0.05 * 24 = 44.8 ms for prompt tokens: 44.8 / 0.018 = 2,488.9, so 2,488 tokens;
    # 5.2 + 0.018 * 2,488 = 49.984 ms; 32,768 / 2,488 = 13.2, so 14 steps;
    # 14 * 5.2 + 0.018 * 32,768 = 72.8 + 589.824 = 662.624 ms.
    solution = solve_target(TargetNumbers(prompt_tokens=32_768, users=24, target_ms=50.0))
    exercise = target_exercise(solution)
    assert quantity(exercise, "chunk").answer == 2_488
    assert quantity(exercise, "stall").answer == pytest.approx(49.984)
    assert quantity(exercise, "ttft").answer == pytest.approx(662.624)
    assert solution.steps == 14
    # Without the decodes 46 / 0.018, without the fixed cost 48.8 / 0.018, without both 50 / 0.018.
    assert slips(exercise, "chunk") == [2_555, 2_711, 2_777]
    assert slips(exercise, "stall") == pytest.approx([595.024, 48.784])
    # One step; 14 * 4 + 589.824; 14 * 49.984.
    assert slips(exercise, "ttft") == pytest.approx([595.024, 645.824, 699.776])
    assert [line.arithmetic for line in exercise.worked] == [
        "4 + 0.05 · 24 = 5.2 ms",
        "50 − 5.2 = 44.8 ms",
        "44.8 / 0.018 = 2,488.9 → 2,488 tokens",
        "5.2 + 0.018 · 2,488 = 49.984 ms",
        "32,768 / 2,488 = 13.17 → 14 steps",
        "14 · 5.2 + 0.018 · 32,768 = 72.8 + 589.824 = 662.624 ms",
    ]
    assert "12× less" in exercise.moral  # 595.024 / 49.984 = 11.9
    assert "67.6 ms later" in exercise.moral  # 662.624 - 595.024


@pytest.mark.parametrize("target_ms", [10, 20, 30, 50, 80, 120])
@pytest.mark.parametrize("users", [8, 24, 64, 96])
def test_target_solutions_agree_with_the_closed_form(users, target_ms):
    for prompt_tokens in (8_192, 16_384):
        numbers = TargetNumbers(prompt_tokens=prompt_tokens, users=users, target_ms=target_ms)
        each = FIXED + PER_DECODE * users
        chunk = math.floor((target_ms - each) / PER_TOKEN)
        steps = -(-prompt_tokens // chunk)
        solution = solve_target(numbers)
        assert solution.chunk_tokens == chunk < prompt_tokens
        assert solution.steps == steps
        assert solution.stall_ms == pytest.approx(float(each + PER_TOKEN * chunk))
        assert solution.ttft_ms == pytest.approx(float(steps * each + PER_TOKEN * prompt_tokens))


def test_a_target_that_nothing_keeps_is_refused():
    with pytest.raises(ValueError, match="no chunk size keeps 4 ms"):
        solve_target(TargetNumbers(prompt_tokens=8_192, users=24, target_ms=4.0))


def test_the_curve_goes_through_the_answer():
    solution = solve_target(TargetNumbers(prompt_tokens=8_192, users=24, target_ms=50.0))
    points = sweep_sizes(solution)
    sizes = [point.chunk_tokens for point in points]
    assert sizes[0] == 64
    assert sizes[-1] == 8_192
    assert 2_488 in sizes
    assert sizes == sorted(set(sizes))
    for point in points:
        assert (point.steps_over_target == 0) == (point.chunk_tokens <= 2_488)


# The budget


def test_budget_exercise_by_hand():
    # 512 - 128 = 384 tokens a step; 32,768 / 384 = 85.3, so 86 steps, the last of 128 tokens;
    # 86 * (4 + 6.4) + 589.824 = 1,484.224 ms. A full step: 10.4 + 0.018 * 384 = 17.312 ms.
    solution = solve_budget(BudgetNumbers(prompt_tokens=32_768, users=128, budget_tokens=512))
    exercise = budget_exercise(solution)
    answers = {each.name: each.answer for each in exercise.quantities}
    assert answers == {
        "off": 0, "slice": 384, "steps": 86, "ttft": pytest.approx(1_484.224),
    }  # fmt: skip
    assert solution.never
    assert solution.step_ms == pytest.approx(17.312)
    assert solution.slices.tolist() == [384] * 85 + [128]
    # 512 a step would be 64 steps, and 64 * 10.4 + 589.824; one step; 86 full steps.
    assert slips(exercise, "steps") == [64, 85]
    assert slips(exercise, "ttft") == pytest.approx([1_255.424, 600.224, 1_488.832])
    # A quarter of the streams: 512 - 32 = 480 a step, 69 steps, 69 * 5.6 + 589.824 = 976.224 ms.
    assert "with 32 streams instead of 128 it would be 69 steps and 976 ms" in exercise.moral
    assert exercise.worked[-1].arithmetic.endswith("894.4 + 589.824 = 1,484.224 ms")
    assert exercise.worked[-2].arithmetic == "32,768 − 85 · 384 = 128 tokens"


@pytest.mark.parametrize("users", [8, 32, 128, 256, 448])
def test_budget_solutions_agree_with_the_closed_form(users):
    budgets = (512, 1_024, 2_048, 4_096, 8_192)
    for budget, prompt in itertools.product(budgets, (16_384, 32_768)):
        solution = solve_budget(
            BudgetNumbers(prompt_tokens=prompt, users=users, budget_tokens=budget)
        )
        steps = -(-prompt // (budget - users))
        assert (solution.whole_tokens, solution.never) == (0, True)
        assert solution.steps == steps
        each = FIXED + PER_DECODE * users
        assert solution.ttft_ms == pytest.approx(float(steps * each + PER_TOKEN * prompt))


# The bug


@pytest.fixture(scope="module")
def decoder():
    return Decoder()


def test_every_case_is_another_bug_and_the_two_masks_that_look_alike_are_not_both_cases():
    assert sorted(CASES) == ["A", "B", "C", "D"]
    assert len(set(CASES.values())) == 4
    assert set(Fault) - set(CASES.values()) == {Fault.NO_CAUSALITY_IN_CHUNK}


@pytest.mark.parametrize("chunk_tokens", [64, 100])
@pytest.mark.parametrize("case", list(CASES))
def test_bug_solutions_are_what_the_worked_lines_say(decoder, case, chunk_tokens):
    (check,) = check_chunk_sizes(
        tokens=256, chunk_sizes=[chunk_tokens], decoder=decoder, fault=CASES[case]
    )
    solution = solve_bug(BugNumbers(case, chunk_tokens), check)
    # Chunks of 64: four; of 100: 100, 100 and 56.
    chunks, last = {64: (4, 64), 100: (3, 56)}[chunk_tokens]
    expected = {
        "A": (0, 256 - chunk_tokens),  # no mask in layer 1; all but the first chunk forget
        "B": (256 - chunk_tokens, 256 - chunk_tokens),  # all but the first chunk are misnumbered
        "C": (0, 256 - chunks),  # the last token of a chunk has no token after it to see
        "D": (256 - last, 256),  # only the last chunk is kept, and it has seen itself alone
    }[case]
    assert (solution.first_wrong, solution.second_wrong) == expected
    exercise = bug_exercise(solution)
    for line, count in zip(exercise.worked, expected, strict=True):
        assert line.arithmetic.endswith(f"{count} positions")
    assert exercise.choice is not None
    assert len(exercise.choice.answers) == ANSWERS
    assert [answer.right for answer in exercise.choice.answers].count(True) == 1
    right = next(answer for answer in exercise.choice.answers if answer.right)
    assert right.feedback == CASES[case].description
    assert ("the last of 56" in exercise.task) == (chunk_tokens == 100)
