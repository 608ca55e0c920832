"""Bad files: experiments and scheduler cases that are none end as bad options do."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from s11.cli import main
from tests.command_line import Command, refusal


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(refusal, capsys)


READERS = [("simulate", "--experiment"), ("sweep", "--experiment"), ("schedule",)]


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
@pytest.mark.parametrize("name", ["missing", "folder", "large", "binary", "deep", "empty", "cut"])
def test_a_file_that_cannot_be_read(
    refused: Command, tmp_path: Path, reader: tuple[str, ...], name: str
) -> None:
    path = tmp_path / f"{name}.json"
    if name == "folder":
        path.mkdir()
    elif name == "large":
        with path.open("wb") as file:
            file.truncate(64 * 2**20 + 1)
    elif name != "missing":
        contents = {"binary": bytes(range(256)), "deep": b"[" * 200_000, "empty": b"", "cut": b"{"}
        path.write_bytes(contents[name])
    assert f"{name}.json" in refused(*reader, str(path))


SMALL = {"requests": [{"request_id": "a", "prompt_tokens": 5}]}


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"speed": 1}, ("'speed'", "policy")),
        ({"schema_version": 2}, ("schema_version: '2'", "1")),
        ({"limits": {"token_budget": 0}}, ("token_budget: 0", "from 1 to 16,777,216")),
        ({"limits": {"budget": 5}}, ("'budget'", "token_budget")),
        ({"limits": [1]}, ("limits", "not an object")),
        ({"cost": {"model": "magic"}}, ("'magic'", "linear")),
        ({"cost": {"fixed_ms": float("nan")}}, ("fixed_ms: nan", "from 0 to 1e+06")),
        ({"policy": ["chunked"]}, ("policy: ['chunked']", "chunked, whole_prompt")),
        ({"itl_target_ms": "50"}, ("itl_target_ms: '50'", "above 0 to 1e+06")),
        ({"workload": {"requests": {}}}, ("requests", "not a list")),
        ({"workload": {"requests": [{"request_id": "a"}]}}, ("prompt_tokens", "missing")),
        ({"workload": {"requests": SMALL["requests"] * 2}}, ("request_id: 'a'", "twice")),
        ({"workload": SMALL | {"tail_steps": -1}}, ("tail_steps: -1", "from 0 to 10,000")),
        ([1], ("experiment", "not an object")),
        ("text", ("experiment", "not an object")),
    ],
)
def test_an_experiment_in_a_file_that_is_none(
    refused: Command, tmp_path: Path, data: Any, named: tuple[str, ...]
) -> None:
    path = tmp_path / "e.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    line = refused("simulate", "--experiment", str(path))
    assert all(name in line for name in named)


@pytest.mark.parametrize("text", ["[]", "null", "0", "false", '""'])
def test_an_experiment_in_a_file_that_is_nothing(
    refused: Command, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "e.json"
    path.write_text(text, encoding="utf-8")
    assert "experiment" in refused("simulate", "--experiment", str(path))


@pytest.mark.parametrize(
    "text", ['{"itl_target_ms": 1%s}', '{"cost": {"fixed_ms": 1%s}}'], ids=["target", "cost"]
)
def test_a_400_digit_number_in_a_file(refused: Command, tmp_path: Path, text: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(text % ("0" * 400), encoding="utf-8")
    assert "_ms: 1" in refused("simulate", "--experiment", str(path))


GOOD_CASE: dict[str, Any] = {
    "id": "c",
    "policy": "chunked",
    "config": {"token_budget": 5},
    "requests": [{"id": "a", "prompt_tokens": 3, "max_new_tokens": 1}],
    "expected_steps": [{"a": 3}],
}
ROW: dict[str, Any] = GOOD_CASE["requests"][0]


def request_case(**changes: Any) -> dict[str, Any]:
    return GOOD_CASE | {"requests": [ROW | changes]}


@pytest.mark.parametrize(
    ("cases", "named"),
    [
        ({}, "not a list of cases"),
        ([1], "not a list of cases"),
        (5, "not a list of cases"),
        *(
            ([{k: v for k, v in GOOD_CASE.items() if k != key}], key)
            for key in ("policy", "config", "requests", "expected_steps")
        ),
        *(
            ([GOOD_CASE | {"requests": [{k: v for k, v in ROW.items() if k != key}]}], key)
            for key in ("id", "prompt_tokens", "max_new_tokens")
        ),
        ([GOOD_CASE | {"config": 3}], "case c"),
        ([GOOD_CASE | {"config": {"token_budget": 0}}], "token_budget: 0"),
        ([GOOD_CASE | {"config": {"max_seqs": "3"}}], "max_seqs: '3'"),
        ([GOOD_CASE | {"config": {"max_chunk": float("nan")}}], "chunk_tokens: nan"),
        ([GOOD_CASE | {"requests": "many"}], "case c"),
        ([GOOD_CASE | {"requests": [ROW, ROW]}], "'a' is used twice"),
        ([request_case(prompt_tokens=float("nan"))], "prompt_tokens: nan"),
        ([request_case(prompt_tokens="3")], "prompt_tokens: '3'"),
        ([request_case(max_new_tokens=0)], "output_tokens: 0"),
        ([request_case(arrival_step=-1)], "arrival_ms: -1"),
        ([GOOD_CASE | {"expected_steps": None}], "case c"),
        ([GOOD_CASE | {"expected_steps": 0}], "case c"),
        ([GOOD_CASE | {"expected_notes": {"finished": {"ghost": 1}}}], "ghost"),
        ([GOOD_CASE | {"expected_notes": {"finished": [1]}}], "case c"),
        ([GOOD_CASE | {"policy": []}], "case c"),
        ([GOOD_CASE, GOOD_CASE | {"id": "second", "config": None}], "case second"),
    ],
)
def test_a_malformed_case(refused: Command, tmp_path: Path, cases: Any, named: str) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    assert named in refused("schedule", str(path))


@pytest.mark.parametrize("steps", [{}, ""])
def test_expected_steps_that_are_no_list(refused: Command, tmp_path: Path, steps: Any) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([GOOD_CASE | {"expected_steps": steps}]), encoding="utf-8")
    assert "case c" in refused("schedule", str(path))


def test_a_case_id_that_is_no_text_to_print(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([GOOD_CASE | {"id": "\ud800", "expected_steps": [{}]}]))
    assert main(["schedule", str(path)]) == 1
    assert "failed \\ud800: step 0" in capsys.readouterr().out
