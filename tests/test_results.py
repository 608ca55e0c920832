from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

from s11 import Experiment, simulate
from s11.results import Result
from tests.loads import load, request


@pytest.fixture
def result() -> Result:
    """Steps: s; s + a 4; s + a 2 + b 2; s + a + b 1; s + b; s, of one millisecond each."""
    a = request("a", 6, output_tokens=2)
    b = request("b", 3, output_tokens=2, arrival_ms=1)
    return simulate(load(a, b, users=1, lead_in=1, tail=1, chunk=4, budget=5))


def test_the_tables_by_hand(result: Result) -> None:
    steps, slices, requests = result.steps, result.slices, result.requests
    assert steps.start_ms.tolist() == [0, 1, 2, 3, 4, 5]
    assert steps.end_ms.tolist() == [1, 2, 3, 4, 5, 6]
    assert steps.prefill_tokens.tolist() == [0, 4, 4, 1, 0, 0]
    assert steps.decode_tokens.tolist() == [1, 1, 1, 2, 2, 1]
    assert slices.step.tolist() == [1, 2, 2, 3]
    assert slices.request.tolist() == [0, 0, 1, 1]
    assert slices.start_token.tolist() == [0, 4, 0, 2]
    assert slices.tokens.tolist() == [4, 2, 2, 1]
    assert requests.request_id == ("a", "b")
    assert requests.arrival_ms.tolist() == [1, 2]
    assert requests.first_scheduled_ms.tolist() == [1, 2]
    assert requests.first_token_ms.tolist() == [3, 4]
    assert requests.last_token_ms.tolist() == [4, 5]


def test_token_times_are_ends_of_steps(result: Result) -> None:
    assert result.token_times_ms(0).tolist() == [3, 4]
    assert result.token_times_ms(1).tolist() == [4, 5]


def test_the_schedule_is_every_steps_batch(result: Result) -> None:
    assert list(result.schedule()) == [
        {"user-1": 1},
        {"user-1": 1, "a": 4},
        {"user-1": 1, "a": 2, "b": 2},
        {"user-1": 1, "a": 1, "b": 1},
        {"user-1": 1, "b": 1},
        {"user-1": 1},
    ]


def test_decodes_come_first_in_a_batch() -> None:
    first = request("first", 1, output_tokens=3)
    batches = simulate(load(first, request("then", 9, arrival_ms=1), users=1, chunk=5)).schedule()
    assert [list(batch) for batch in batches] == [
        ["user-1", "first"],
        ["user-1", "first", "then"],
        ["user-1", "first", "then"],
    ]


def test_a_request_named_like_a_stream_hides_nobody() -> None:
    """A request may be called user-1; the step still carries a decode and five prompt tokens."""
    try:
        experiment = load(request("user-1", 5), users=1)
    except ValueError:
        return
    result = simulate(experiment)
    (batch,) = result.schedule()
    assert sum(batch.values()) == 6


@pytest.mark.parametrize("name", ["steps", "slices", "requests"])
def test_a_table_is_a_data_frame_of_its_columns(result: Result, name: str) -> None:
    table = getattr(result, name)
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(table.columns())
    assert len(frame) == len(table)
    for column, values in table.columns().items():
        assert frame[column].tolist() == list(values)


def test_columns_have_one_length_and_one_kind(result: Result) -> None:
    for table in (result.steps, result.slices, result.requests):
        for name, column in table.columns().items():
            assert len(column) == len(table)
            if name.endswith("_ms"):
                assert column.dtype == np.float64
            elif name != "request_id":
                assert column.dtype == np.int64


def test_a_result_is_frozen(result: Result) -> None:
    with pytest.raises(FrozenInstanceError):
        result.streaming_users = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        result.steps.end_ms = result.steps.start_ms  # type: ignore[misc]


def test_results_are_read_only_since_sessions_share_them() -> None:
    result = simulate(Experiment())
    for table in (result.steps, result.slices, result.requests):
        for name, column in table.columns().items():
            if name != "request_id":
                with pytest.raises(ValueError, match="read-only"):
                    column[:] = 0
