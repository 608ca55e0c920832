import math
import re

import numpy as np
import pytest

from s11.checks import require_choice, require_int, require_ms, require_optional_int


def test_what_is_allowed_is_returned() -> None:
    assert require_int("n", 1, 1, 9) == 1
    assert require_int("n", 9, 1, 9) == 9
    assert require_optional_int("n", None, 1, 9) is None
    assert require_optional_int("n", 3, 1, 9) == 3
    assert require_choice("kind", "a", ("a", "b")) == "a"
    assert require_ms("t", 0, 0, 9) == 0
    assert isinstance(require_ms("t", 5, 0, 9), float)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (10_001, "10001"),
        (-1, "-1"),
        (1.0, "1.0"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (True, "True"),
        ("5", "'5'"),
        (None, "None"),
        ([], "[]"),
    ],
)
def test_a_refused_whole_number_names_field_value_and_range(value: object, shown: str) -> None:
    expected = f"n: {shown} is not a whole number from 1 to 10,000"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        require_int("n", value, 1, 10_000)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-0.5, "-0.5"),
        (9.5, "9.5"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (False, "False"),
        ("1", "'1'"),
        (None, "None"),
        (1j, "1j"),
    ],
)
def test_a_refused_number_names_field_value_and_range(value: object, shown: str) -> None:
    expected = f"t: {shown} is not a number from 0 to 9"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        require_ms("t", value, 0, 9)


def test_above_excludes_the_lowest_and_says_so() -> None:
    with pytest.raises(ValueError, match=r"^t: 0 is not a number above 0 to 9$"):
        require_ms("t", 0, 0, 9, above=True)
    assert require_ms("t", 1e-300, 0, 9, above=True) == 1e-300


@pytest.mark.parametrize("value", ["c", "", None, 1, ["a"]])
def test_a_refused_choice_lists_the_choices(value: object) -> None:
    with pytest.raises(ValueError, match=rf"^kind: {re.escape(repr(value))} is not one of a, b$"):
        require_choice("kind", value, ("a", "b"))


@pytest.mark.parametrize("digits", [100, 400, 5000])
def test_a_long_value_is_shown_short(digits: int) -> None:
    for value in ("x" * digits, 10**digits):
        with pytest.raises(ValueError, match=r"^n: ") as refused:
            require_int("n", value, 1, 9)
        assert len(str(refused.value)) < 150


@pytest.mark.parametrize("digits", [309, 400, 5000])
def test_a_whole_number_beyond_floats_is_refused(digits: int) -> None:
    with pytest.raises(ValueError, match=r"^t: .* is not a number from 0 to 9$"):
        require_ms("t", 10**digits, 0, 9)


def test_numpys_numbers_are_numbers_and_come_out_plain() -> None:
    assert type(require_int("n", np.int64(5), 1, 9)) is int
    assert type(require_ms("ms", np.float32(0.5), 0, 1)) is float
    for value in (np.bool_(True), True):
        with pytest.raises(ValueError, match="not a whole number"):
            require_int("n", value, 0, 9)
