from typing import Any

import pytest

from s11.attention import execute, verify_execution

from .kv_schedules import assert_all_identical

# a and b begin alike for 6 tokens; c shares nothing with anyone.
GOOD: dict[str, Any] = {
    "schedule": [{"a": 5, "c": 2}, {"a": 3, "b": 3}, {"a": 1, "c": 2}],
    "prompts": {
        "a": [1, 2, 3, 4, 5, 6, 7, 8],
        "b": [1, 2, 3, 4, 5, 6, 9],
        "c": [9, 2, 3, 4, 5, 6],
    },
    "output_tokens": {"a": 3, "b": 1, "c": 1},
    "preempted": {2: ["c"]},
    "cached": {1: {"b": 4}},
}


def test_the_schedule_that_the_refusals_vary_is_fine(tiny):
    assert_all_identical(verify_execution(decoder=tiny, **GOOD))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preempted": {4: ["a"]}}, r"preempted: got 4; allowed: an integer in 0\.\.3"),
        ({"preempted": {-1: ["a"]}}, r"preempted: got -1; allowed: an integer in 0\.\.3"),
        ({"preempted": {"1": ["a"]}}, r"preempted: got '1'; allowed: an integer"),
        ({"preempted": {1: ["d"]}}, r"preempted\[1\]: got 'd'; allowed: any of \['a', 'b', 'c'\]"),
        ({"preempted": {1: "c"}}, r"preempted\[1\]: got 'c'; allowed: a sequence of request ids"),
        ({"preempted": {2: ["c", "c"]}}, r"preempted\[2\]: got \['c', 'c'\]; .* request once"),
        ({"preempted": {1: ["b"]}}, r"preempted\[1\]: got 'b'; allowed: requests that hold"),
        ({"preempted": {2: ["b"]}}, r"preempted\[2\]: got 'b'; .* have not finished"),
        ({"preempted": {1: ["c"], 2: ["c"]}}, r"preempted\[2\]: got 'c'; allowed: requests that h"),
        ({"cached": {3: {"a": 0}}}, r"cached: got 3; allowed: an integer in 0\.\.2"),
        ({"cached": {1: {"d": 0}}}, r"cached\[1\]: got 'd'; allowed: any of \['a', 'b'\]"),
        ({"cached": {1: {"c": 0}}}, r"cached\[1\]: got 'c'; allowed: any of \['a', 'b'\]"),
        ({"cached": {1: {"b": -1}}}, r"cached\[1\]\['b'\]: got -1; allowed: an integer in 0\.\.6"),
        ({"cached": {1: {"b": 7}}}, r"cached\[1\]\['b'\]: got 7; allowed: an integer in 0\.\.6"),
        ({"cached": {1: {"b": 4.0}}}, r"cached\[1\]\['b'\]: got 4\.0; allowed: an integer"),
        ({"cached": {1: {"b": 5}}}, r"schedule\[1\]\['b'\]: got 3; allowed: an integer in 1\.\.2"),
        ({"cached": {1: {"a": 0}}}, r"\['a'\]: got 0; allowed: none, the request holds 5 tokens"),
        ({"cached": {2: {"a": 4}}}, r"\['a'\]: got 4; allowed: none, the request holds 8 tokens"),
        ({"cached": {0: {"c": 1}}}, r"cached\[0\]\['c'\]: got 1; allowed: an integer in 0\.\.0"),
        ({"cached": {2: {"c": 3}}}, r"cached\[2\]\['c'\]: got 3; allowed: an integer in 0\.\.2"),
        (
            {"schedule": [{"a": 5}, {"b": 1}], "preempted": {}, "cached": {1: {"b": 6}}},
            r"cached\[1\]\['b'\]: got 6; allowed: an integer in 0\.\.5, the leading tokens that",
        ),
        (
            {"schedule": [{"a": 1, "b": 1}], "preempted": {}, "cached": {0: {"a": 4, "b": 4}}},
            r"cached\[0\]\['a'\]: got 4; allowed: an integer in 0\.\.0",
        ),
    ],
)
@pytest.mark.parametrize("function", [execute, verify_execution])
def test_refusals(tiny, function, change, message):
    with pytest.raises(ValueError, match=message):
        function(decoder=tiny, **GOOD | change)
