"""Measured tables: read by column name, and refused in one sentence that says where."""

import csv
import math

import numpy as np
import pytest

from s11.validation import tables
from s11.validation.tables import BYTES, COUNT, MILLISECONDS, TEXT, YES_NO, read_table

COLUMNS = {
    "gpu": TEXT,
    "m": COUNT,
    "message_bytes": BYTES,
    "gated": YES_NO,
    "latency_ms": MILLISECONDS,
}
GOOD = {"gpu": "h100", "m": "128", "message_bytes": "1024", "gated": "True", "latency_ms": "0.5"}


@pytest.fixture
def write(tmp_path):
    def write_rows(*rows, encoding="utf-8"):
        path = tmp_path / "gemm.csv"
        with path.open("w", newline="", encoding=encoding) as file:
            writer = csv.DictWriter(file, fieldnames=rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write_rows


def refused(path):
    with pytest.raises(ValueError, match=r"^gemm\.csv") as caught:
        read_table(path, COLUMNS)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 200
    return sentence


def test_reads_columns_by_name_whatever_their_order_and_company(write):
    second = {
        "gpu": " a100_sxm ",
        "m": "2e2",
        "message_bytes": "7",
        "gated": "0",
        "latency_ms": "3",
    }
    path = write(
        *({"remark": "x, y", **dict(reversed(row.items()))} for row in (GOOD, second)),
        encoding="utf-8-sig",
    )
    table = read_table(path, COLUMNS)
    assert table.rows == 2
    assert set(table.columns) == set(COLUMNS)
    assert table.texts("gpu").tolist() == ["h100", "a100_sxm"]
    assert table.numbers("m").tolist() == [128.0, 200.0]
    assert table.numbers("gated").tolist() == [1.0, 0.0]
    assert table.numbers("latency_ms").dtype == np.float64
    part = table.where(np.array([False, True]))
    assert part.rows == 1
    assert part.texts("gpu").tolist() == ["a100_sxm"]


def test_a_table_without_rows_has_none(write):
    path = write(GOOD)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert read_table(path, COLUMNS).rows == 0


@pytest.mark.parametrize(
    ("column", "text", "allowed"),
    [
        ("gpu", "", "a text"),
        ("gpu", "   ", "a text"),
        ("m", "", "a whole number from 1 to 16,777,216"),
        ("m", "many", "a whole number from 1 to 16,777,216"),
        ("m", "1.5", "a whole number from 1 to 16,777,216"),
        ("m", "0", "a whole number from 1 to 16,777,216"),
        ("m", "-3", "a whole number from 1 to 16,777,216"),
        ("m", "1e308", "a whole number from 1 to 16,777,216"),
        ("m", "nan", "a whole number from 1 to 16,777,216"),
        ("m", "inf", "a whole number from 1 to 16,777,216"),
        ("m", "1_000", "a whole number from 1 to 16,777,216"),
        ("m", "1,000", "a whole number from 1 to 16,777,216"),
        ("message_bytes", "1e16", "a whole number from 1 to 1,125,899,906,842,624"),
        ("gated", "maybe", "true or false"),
        ("gated", "2", "true or false"),
        ("latency_ms", "", "a number from 1e-06 to 1e+09"),
        ("latency_ms", "fast", "a number from 1e-06 to 1e+09"),
        ("latency_ms", "NaN", "a number from 1e-06 to 1e+09"),
        ("latency_ms", "1e308", "a number from 1e-06 to 1e+09"),
        ("latency_ms", "1e-300", "a number from 1e-06 to 1e+09"),
        ("latency_ms", "0", "a number from 1e-06 to 1e+09"),
        ("latency_ms", "-0.1", "a number from 1e-06 to 1e+09"),
        ("latency_ms", "0x10", "a number from 1e-06 to 1e+09"),
    ],
)
def test_a_cell_is_refused_with_row_column_value_and_range(write, column, text, allowed):
    sentence = refused(write(GOOD, GOOD, {**GOOD, column: text}))
    shown = repr(text) if text.strip() else "an empty cell"
    assert sentence.startswith(f"gemm.csv row 4, {column}: {shown} is not {allowed}")


def test_a_long_value_is_shown_short(write):
    sentence = refused(write({**GOOD, "latency_ms": "9" * 400}))
    assert f"{'9' * 37}..." in sentence
    assert "9" * 38 not in sentence


def test_a_short_row_is_an_empty_cell(write):
    path = write(GOOD)
    path.write_text(path.read_text() + "h100,5\n")
    assert "row 3, message_bytes: an empty cell" in refused(path)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_named(write, column):
    path = write({name: text for name, text in GOOD.items() if name != column})
    assert f"row 1: the column {column} is missing" in refused(path)


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "gemm.csv"
    path.write_text("gpu,m,message_bytes,gated,latency_ms,m\nh100,1,1,1,1,2\n")
    assert "the column m is there 2 times" in refused(path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00\x01\x02"])
def test_a_file_that_is_no_table_lacks_its_first_column(tmp_path, content):
    path = tmp_path / "gemm.csv"
    path.write_bytes(content)
    assert "the column gpu is missing" in refused(path)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_refused(write, encoding):
    path = write({**GOOD, "gpu": "h100 für Wärme"}, encoding=encoding)
    assert "not a text in UTF-8" in refused(path)


def test_a_field_without_end_is_refused(write):
    path = write(GOOD)
    path.write_text(path.read_text() + '"' + "x" * 200_000)
    assert "not a CSV file" in refused(path)


def test_a_file_too_large_is_refused_unread(write, monkeypatch):
    path = write(GOOD)
    size = path.stat().st_size
    monkeypatch.setattr(tables, "MAX_FILE_BYTES", size)
    assert read_table(path, COLUMNS).rows == 1
    monkeypatch.setattr(tables, "MAX_FILE_BYTES", size - 1)
    assert f"{size} bytes is too large (allowed: up to {size - 1} bytes)" in refused(path)


def test_too_many_rows_are_refused(write, monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    assert read_table(write(GOOD, GOOD), COLUMNS).rows == 2
    assert "more than 2 rows" in refused(write(GOOD, GOOD, GOOD))


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    assert "cannot be read" in refused(tmp_path / "gemm.csv")


def test_shortest_and_longest_time_are_accepted(write):
    path = write({**GOOD, "latency_ms": "1e-6"}, {**GOOD, "latency_ms": "1e9"})
    times = read_table(path, COLUMNS).numbers("latency_ms").tolist()
    assert math.isclose(times[0], 1e-6)
    assert times[1] == 1e9
