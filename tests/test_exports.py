import csv
import io
import json
import math
import sys
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment, LinearCost, measure, simulate
from s11.exports import (
    FORMULA_STARTS,
    ROWS_A_PIECE,
    csv_pieces,
    json_pieces,
    records_pieces,
    rounded,
    steps_to_csv,
    to_csv,
    to_json,
    to_parquet,
)
from tests.loads import EXPERIMENTS, load, request


def exported(experiment: Experiment) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is not JSON")

    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    return json.loads(to_json(experiment, result, metrics), parse_constant=refuse)


def test_rounding_drops_binary_dust_at_any_depth() -> None:
    dusty = {"a": [0.1 + 0.2, (math.nan, 3)], "b": {"c": 23.631999999999998}, "d": "0.30000000004"}
    assert rounded(dusty) == {"a": [0.3, [None, 3]], "b": {"c": 23.632}, "d": "0.30000000004"}


@settings(max_examples=60)
@given(EXPERIMENTS)
def test_json_holds_the_run(experiment: Experiment) -> None:
    """Times here are short binary fractions of at most eight decimals: nothing is rounded."""
    data, result = exported(experiment), simulate(experiment)
    assert Experiment.from_dict(data["experiment"]) == experiment
    for name in ("start_ms", "duration_ms", "prefill_tokens", "decode_tokens"):
        column = [step[name] for step in data["steps"]]
        assert column == pytest.approx(getattr(result.steps, name).tolist(), abs=1e-9)
    assert data["never_scheduled"] == list(result.never_scheduled)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms).to_dict()
    assert data["metrics"].keys() == metrics.keys()
    for name, value in metrics.items():
        assert data["metrics"][name] == (None if value is None else pytest.approx(value, abs=1e-9))


def test_json_has_the_contracts_keys() -> None:
    data = exported(Experiment())
    assert data.keys() >= {"experiment", "metrics", "steps", "never_scheduled"}
    assert data["metrics"].keys() >= {
        "longest_stall_ms",
        "ttft_ms",
        "steps_over_target",
        "decode_tokens_per_s",
        "makespan_ms",
        "itl_p50_ms",
        "itl_p99_ms",
    }


def test_json_says_who_never_ran_and_what_was_cut() -> None:
    stuck = exported(load(request("a", 9), policy="whole_prompt", budget=5, users=1, tail=1))
    assert stuck["never_scheduled"] == ["a"]
    assert stuck["never_scheduled_because"] == "chunking off"
    assert stuck["stopped_at_max_steps"] is False
    experiment = Experiment()
    cut = simulate(experiment, max_steps=2)
    metrics = measure(cut, itl_target_ms=50)
    assert json.loads(to_json(experiment, cut, metrics))["stopped_at_max_steps"] is True


def test_json_stays_json_for_a_step_of_next_to_no_time() -> None:
    cost = LinearCost(fixed_ms=1e-6, prefill_ms_per_token=0, decode_ms_per_token=0)
    exported(load(request("a", 1, output_tokens=2), cost=cost))


def test_csv_of_steps_reads_back() -> None:
    result = simulate(Experiment())
    rows = list(csv.DictReader(io.StringIO(steps_to_csv(result))))
    assert len(rows) == 13
    assert list(rows[0]) == [*result.steps.columns(), "step", "worker"]
    assert [int(row["step"]) for row in rows] == list(range(13))
    assert [int(row["prefill_tokens"]) for row in rows] == [0] * 2 + [1024] * 8 + [0] * 3
    assert [row["duration_ms"] for row in rows] == ["5.2"] * 2 + ["23.632"] * 8 + ["5.2"] * 3


def test_csv_quotes_what_needs_it_and_leaves_what_is_missing_empty() -> None:
    text = to_csv({"name": ["a,b", 'c"d', "e\nf"], "ms": [None, math.nan, 1.5]})
    assert text.startswith("name,ms\n")
    assert list(csv.reader(io.StringIO(text)))[1:] == [["a,b", ""], ['c"d', ""], ["e\nf", "1.5"]]


def test_csv_of_nothing_is_its_header() -> None:
    assert to_csv({"a": [], "b": []}) == "a,b\n"


def test_columns_of_several_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        to_csv({"a": [1, 2], "b": [1]})


@pytest.mark.parametrize("rows", [True, False])
def test_json_in_pieces_with_more_and_with_fewer_rows(rows: bool) -> None:
    experiment = load(request("a", 3), request("b", 2, output_tokens=2), users=1)
    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=50)
    about = {"trace": {"rows": 2, "none": None}}
    data = json.loads("".join(json_pieces(experiment, result, metrics, rows=rows, more=about)))
    assert data["trace"] == about["trace"]
    assert ("steps" in data) is rows
    assert ("requests" in data["experiment"]["workload"]) is rows
    if rows:
        assert Experiment.from_dict(data["experiment"]) == experiment
        assert [step["prefill_tokens"] for step in data["steps"]] == [5, 0]


def test_a_request_named_as_json_does_not_break_the_json() -> None:
    hostile = load(request('"requests": []', 1), request('}]\n"\ud800', 2))
    assert Experiment.from_dict(exported(hostile)["experiment"]) == hostile


def test_a_long_run_comes_in_pieces() -> None:
    """No piece holds more rows than it may."""
    count = 3 * ROWS_A_PIECE + 1
    columns = {"n": np.arange(count), "half": np.arange(count) / 2}
    pieces = list(csv_pieces(columns))
    assert max(piece.count("\n") for piece in pieces) <= ROWS_A_PIECE + 1
    rows = list(csv.reader(io.StringIO("".join(pieces))))
    assert rows[0] == ["n", "half"]
    assert [int(row[0]) for row in rows[1:]] == list(range(count))
    assert [float(row[1]) for row in rows[1:]] == [n / 2 for n in range(count)]
    assert json.loads("".join(records_pieces(columns)))[-1] == {"n": count - 1, "half": 6144.0}


def test_records_of_nothing_and_of_what_is_missing() -> None:
    assert json.loads("".join(records_pieces({"a": []}))) == []
    columns: dict[str, Any] = {
        "ms": np.array([1.5, math.nan]),
        "name": ["x", None],
        "over": np.array([True, False]),
    }
    assert json.loads("".join(records_pieces(columns))) == [
        {"ms": 1.5, "name": "x", "over": True},
        {"ms": None, "name": None, "over": False},
    ]


@pytest.mark.parametrize("start", FORMULA_STARTS)
def test_a_text_is_no_formula_and_a_number_stays_one(start: str) -> None:
    text = f"{start}SUM(A1)"
    written = to_csv({text: [text], "plain": ["a-b"], "n": [-1.5]})
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows == [[f"'{text}", "plain", "n"], [f"'{text}", "a-b", "-1.5"]]


@given(st.lists(st.tuples(st.text(), st.sampled_from(["", "a", "\r", "\r\n", "\n", '"', ","]))))
def test_csv_reads_back_whatever_a_text_holds(rows: list[tuple[str, str]]) -> None:
    columns = {"first": [a for a, _ in rows], "second": [b for _, b in rows]}
    read = list(csv.reader(io.StringIO(to_csv(columns), newline="")))
    guarded = [[f"'{c}" if c.startswith(FORMULA_STARTS) else c for c in row] for row in rows]
    assert read == [["first", "second"], *guarded]


def test_half_a_character_can_be_written() -> None:
    columns = {"id": ["\ud800", "é\x00"]}
    assert to_csv(columns).encode().decode() == "id\n\\ud800\né\x00\n"
    assert pd.read_parquet(io.BytesIO(to_parquet(columns)))["id"].tolist() == ["\\ud800", "é\x00"]


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.text()),
            st.floats(allow_infinity=False),
            st.integers(-(2**63), 2**63 - 1),
            st.booleans(),
        )
    )
)
def test_parquet_reads_back_exactly(rows: list[tuple[str | None, float, int, bool]]) -> None:
    texts, floats, ints, bools = ([row[place] for row in rows] for place in range(4))
    columns: dict[str, Any] = {
        "text": texts,
        "float": np.array(floats, dtype=np.float64),
        "int": np.array(ints, dtype=np.int64),
        "bool": np.array(bools, dtype=bool),
    }
    frame = pd.read_parquet(io.BytesIO(to_parquet(columns)))
    assert list(frame) == list(columns)
    read = [None if pd.isna(text) else text for text in frame["text"]]
    assert read == texts
    assert list(map(repr, frame["float"].tolist())) == list(map(repr, floats))
    assert frame["int"].tolist() == ints
    assert frame["bool"].tolist() == bools


def test_without_pyarrow_parquet_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match="format: parquet needs the package pyarrow"):
        to_parquet({"a": [1]})
