import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.costs.measurements import (
    COLUMNS,
    MAX_CSV_CHARACTERS,
    MAX_ROWS,
    Measurements,
    read_measurements,
)

HEADER = "prefill_tokens,decode_tokens,context_tokens,duration_ms"


def columns(measured: Measurements) -> list[list[float]]:
    return [getattr(measured, name).tolist() for name in ("file_row", *COLUMNS)]


PLAIN = [[2, 3], [0, 512], [24, 0], [24_000, 4096], [9.5, 16.25]]


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n0,24,24000,9.5\n512,0,4096,16.25\n",
        f"{HEADER}\n0,24,24000,9.5\n512,0,4096,16.25",
        f"\ufeff{HEADER}\r\n0,24,24000,9.5\r\n512,0,4096,16.25\r\n\r\n",
        f"{HEADER}\n 0 ,24.0,2.4e4,+9.50\n5.12e2,0,4096.,1625e-2\n",
        f'{HEADER}\n"0","24","24000","9.5"\n512,0,4096,16.25\n',
        "gpu,duration_ms,context_tokens, decode_tokens ,note,prefill_tokens\n"
        'H100,9.5,24000,24,,0\nH100,16.25,4096,0,"long, cut",512\n',
    ],
    ids=["plain", "no last newline", "BOM and CRLF", "numbers", "quoted", "order and extras"],
)
def test_columns_are_read_by_name(text: str) -> None:
    assert columns(read_measurements(text)) == PLAIN


def test_rows_are_counted_as_in_the_file() -> None:
    measured = read_measurements(f"\n{HEADER}\n\n1,0,0,5\n\n2,0,0,6\n")
    assert measured.file_row.tolist() == [4, 6]
    assert len(measured) == 2


def test_the_columns_are_read_only_and_of_one_length() -> None:
    measured = read_measurements(f"{HEADER}\n1,0,0,5\n")
    with pytest.raises(ValueError, match="read-only"):
        measured.duration_ms[0] = 1.0
    with pytest.raises(ValueError, match=r"^duration_ms: 2 rows beside 1 of file_row"):
        Measurements(
            file_row=np.array([2]),
            prefill_tokens=np.array([1]),
            decode_tokens=np.array([0]),
            context_tokens=np.array([0]),
            duration_ms=np.array([5.0, 6.0]),
        )


WHOLE = "is not a whole number from 0 to 16,777,216"
DURATION = "is not a number from 0.001 to 1e+06"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("512,0,0,", f"row 3, duration_ms: '' {DURATION}"),
        ("512,0,0,0", f"row 3, duration_ms: '0' {DURATION}"),
        ("512,0,0,0.0009", f"row 3, duration_ms: '0.0009' {DURATION}"),
        ("512,0,0,1000000.5", f"row 3, duration_ms: '1000000.5' {DURATION}"),
        ("512,0,0,-5", f"row 3, duration_ms: '-5' {DURATION}"),
        ("512,0,0,NaN", f"row 3, duration_ms: 'NaN' {DURATION}"),
        ("512,0,0,inf", f"row 3, duration_ms: 'inf' {DURATION}"),
        (f"512,0,0,5.{'0' * 40}", "row 3, duration_ms: '5.0000000000"),
        ("512,0,0,1e308", f"row 3, duration_ms: '1e308' {DURATION}"),
        ("512,0,0,1e999", f"row 3, duration_ms: '1e999' {DURATION}"),
        ("512,0,0,5 ms", f"row 3, duration_ms: '5 ms' {DURATION}"),
        ("512,0,0,1_0", f"row 3, duration_ms: '1_0' {DURATION}"),
        (",0,0,5", f"row 3, prefill_tokens: '' {WHOLE}"),
        ("-1,0,0,5", f"row 3, prefill_tokens: '-1' {WHOLE}"),
        ("nan,0,0,5", f"row 3, prefill_tokens: 'nan' {WHOLE}"),
        ("1e308,0,0,5", f"row 3, prefill_tokens: '1e308' {WHOLE}"),
        ("16777217,0,0,5", f"row 3, prefill_tokens: '16777217' {WHOLE}"),
        ("512,1.5,0,5", f"row 3, decode_tokens: '1.5' {WHOLE}"),
        ("512,١٢,0,5", f"row 3, decode_tokens: '١٢' {WHOLE}"),  # Arabic digits
        ("512,many,0,5", f"row 3, decode_tokens: 'many' {WHOLE}"),
        (
            "512,0,1000000000001,5",
            "row 3, context_tokens: '1000000000001' is not a whole number from 0 to "
            "1,000,000,000,000",
        ),
        ("0,0,100,5", "row 3, decode_tokens: 0 beside 0 prefill_tokens is no step"),
        ("512,0,0", "measurements: row 3 has 3 cells (allowed: 4, as the first)"),
        ("512,0,0,5,6", "measurements: row 3 has 5 cells (allowed: 4, as the first)"),
        ("512,0,0,5\0", "measurements: row 3 has a null byte"),
        ('512,0,0,"5', "measurements: row 3 is not CSV text (unexpected end of data)"),
        (f"512,0,0,{'9' * 200_000}", "measurements: row 3 is not CSV text (field larger than"),
    ],
)
def test_a_bad_row_is_refused_by_row_column_value_and_range(row: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_measurements(f"{HEADER}\n1,0,0,5\n{row}")


def test_a_number_of_very_many_digits_is_refused_in_short() -> None:
    with pytest.raises(
        ValueError, match=r"^row 2, decode_tokens: '9{50,}\.\.\. is not a"
    ) as caught:
        read_measurements(f"{HEADER}\n1,{'9' * 100_000},0,5\n")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "measurements: the column prefill_tokens is missing; the first row has nothing"),
        (
            "prefill-tokens;decode-tokens\n1;2\n",
            "measurements: the column prefill_tokens is missing; the first row has "
            "'prefill-tokens;decode-tokens'",
        ),
        (
            "prefill_tokens,decode_tokens,duration_ms\n1,0,5\n",
            "measurements: the column context_tokens is missing; the first row has "
            "'prefill_tokens', 'decode_tokens', 'duration_ms'",
        ),
        (
            f"{HEADER},duration_ms\n1,0,0,5,5\n",
            "measurements: the column duration_ms is there twice",
        ),
        (
            "prefill_tokens;decode_tokens;context_tokens;duration_ms\n512;0;0;17,9",
            "measurements: the first row has semicolons between its columns (allowed: commas, and",
        ),
        (
            '\n"prefill_tokens";"decode_tokens";"context_tokens";"duration_ms"\n512;0;0;17,9',
            "measurements: the first row has semicolons between its columns",
        ),
        (
            "gpu, prefill_tokens;decode_tokens;context_tokens;duration_ms\n",
            "measurements: the first row has semicolons between its columns",
        ),
        (
            "prefill_tokens\tdecode_tokens\tcontext_tokens\tduration_ms\n512\t0\t0\t17.9",
            "measurements: the first row has tabs between its columns",
        ),
        (HEADER, "measurements: no row below the header"),
        (
            f"{HEADER}\n" + "1,0,0,5\n" * (MAX_ROWS + 1),
            "measurements: more than 200,000 rows",
        ),
        (
            "x" * (MAX_CSV_CHARACTERS + 1),
            "measurements: a text of 5,000,001 characters is too long",
        ),
    ],
)
def test_a_table_of_another_shape_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_measurements(text)


cells = st.one_of(
    st.sampled_from(["0", "1", "512", "-1", "1e308", "NaN", "", '"', " 7 ", "4.5", "\0", "\r"]),
    st.text(max_size=5),
    st.floats().map(repr),
    st.integers().map(str),
)
tables = st.lists(st.lists(cells, min_size=3, max_size=5).map(",".join), max_size=4)


@given(st.one_of(st.text(), tables.map(lambda rows: "\n".join([HEADER, *rows]))))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        measured = read_measurements(text)
    except ValueError as error:
        reason = str(error)
    else:
        reason = ""
        assert (measured.duration_ms > 0).all()
        assert (measured.prefill_tokens + measured.decode_tokens > 0).all()
    assert len(reason.splitlines()) <= 1
    assert len(reason) < 500
