import math

import pytest

from s11 import EngineLimits

FIELDS = ("token_budget", "chunk_tokens", "max_seqs")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, -1, 1.5, 16_777_217, float("nan"), True, "8"])
def test_a_limit_that_is_no_whole_number_of_at_least_1_is_refused(
    field: str, value: object
) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: .* not a whole number from 1 to 16,777,216$"):
        EngineLimits(**{field: value})  # type: ignore[arg-type]


def test_the_chapters_limits_are_a_chunk_cap_of_1024_and_nothing_else() -> None:
    limits = EngineLimits()
    assert limits.tokens_per_slice() == 1024
    assert limits.tokens_per_step() == math.inf
    assert limits.seats() == math.inf


def test_a_limit_is_what_it_says_and_none_is_no_limit() -> None:
    some = EngineLimits(token_budget=5, chunk_tokens=6, max_seqs=7)
    assert (some.tokens_per_step(), some.tokens_per_slice(), some.seats()) == (5, 6, 7)
    assert EngineLimits(chunk_tokens=None).tokens_per_slice() == math.inf
    assert hash(some) == hash(EngineLimits(token_budget=5, chunk_tokens=6, max_seqs=7))
