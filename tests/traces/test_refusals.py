"""Files that are wrong, cut off or hostile: one sentence that says where."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from s11.traces import collected, lines, read_trace
from tests.traces.files import AZURE, azure, bench, burstgpt, call, mooncake, packed, read

GOOD = "2023-11-16 18:00:00,5,6"
TOKENS = r"a whole number of tokens from 0 to 16,777,216"


def refusal(text: str | bytes, **options: Any) -> str:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is what is tested
        read(text, **options)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert len(sentence) < 500
    return sentence


NO_TOKENS = [
    "",
    "-1",
    "1.5",
    "nan",
    "inf",
    "1e308",
    "1_000",
    "0x10",
    "16777217",
    "9" * 5_000,
    "1e-3",
    "٣",
]


@pytest.mark.parametrize("value", NO_TOKENS, ids=lambda value: value[:8])
@pytest.mark.parametrize("column", ["ContextTokens", "GeneratedTokens"])
def test_no_count_of_tokens(column: str, value: str) -> None:
    row = [GOOD[:19], value, "6"] if column == "ContextTokens" else [GOOD[:19], "5", value]
    sentence = refusal(azure(GOOD, ",".join(row)))
    assert sentence.startswith(f"trace: row 3, {column}: {value[:30]!r}"[:50])
    assert sentence.endswith(f"(allowed: {TOKENS})")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "2023-11-16",
        "2023-02-29 00:00:00",
        "2023-13-01 00:00:00",
        "2023-11-16 24:00:00",
        "2023-11-16 18:60:00",
        "2023-11-16 18:00:61",
        "2023-11-16 18:00:00.0123456789",
        "0001-01-01 00:00:00",
        "9999-12-31 00:00:00",
        "1999-12-31 23:59:59",
        "2100-01-01 00:00:00",
        "2023-11-16 18:00:00 PM",
        "1700157600",
        "2023-11-16 18:00:00." + "9" * 1_000,
    ],
    ids=lambda value: value[:25],
)
def test_no_time_of_azure(value: str) -> None:
    sentence = refusal(azure(GOOD, f"{value},5,6"))
    assert sentence.startswith("trace: row 3, TIMESTAMP: ")
    assert repr(value[:30])[1:-1] in sentence
    assert "of the years 2000 to 2099" in sentence


@pytest.mark.parametrize(
    "value", ["", "-1", "nan", "inf", "1e308", "4000000001", "9" * 5_000, "1e9999", "2023-11-16"]
)
def test_no_time_of_burstgpt(value: str) -> None:
    sentence = refusal(burstgpt(("0", "5", "6"), (value, "5", "6")))
    assert sentence.startswith("trace: row 3, Timestamp: ")
    assert sentence.endswith("(allowed: seconds from 0 to 4,000,000,000)")


@pytest.mark.parametrize("field", ["timestamp", "input_length", "output_length"])
@pytest.mark.parametrize("value", ["-1", "NaN", "1e308", "true", "null", '"5"', "[]", "{}"])
def test_no_number_of_mooncake(field: str, value: str) -> None:
    line = json.dumps(call() | {field: 5}).replace(f'"{field}": 5', f'"{field}": {value}')
    sentence = refusal(mooncake(call()) + line)
    assert sentence.startswith(f"trace: row 2, {field}: ")
    if value not in ("null", "[]", "{}"):
        assert value.strip('"').lower() in sentence.lower().replace("+", "")
    assert "(allowed: " in sentence


def test_a_fraction_of_a_token_of_mooncake() -> None:
    assert "input_length: 5.5 (allowed: " in refusal(mooncake(call(input_length=5.5)))


@pytest.mark.parametrize("field", ["timestamp", "input_length", "output_length"])
def test_a_field_of_mooncake_is_missing(field: str) -> None:
    row = call(1, hash_ids=[1, 2])
    del row[field]
    assert refusal(mooncake(call(), row)).startswith(f"trace: row 2, {field}: missing (allowed: ")


@pytest.mark.parametrize(
    ("hash_ids", "told"),
    [
        ([1], "row 2, hash_ids: 1 ids for an input_length of 600 (allowed: 2, one"),
        ([1, 2, 3], "row 2, hash_ids: 3 ids for an input_length of 600"),
        ([], "row 2, hash_ids: 0 ids"),
        ([1, -2], "row 2, hash_ids: -2 (allowed: whole numbers from 0"),
        ([1, 2**63], "row 2, hash_ids: 9223372036854775808"),
        ([1, True], "row 2, hash_ids: True"),
        ([1, 2.0], "row 2, hash_ids: 2.0"),
        ([1, "2"], "row 2, hash_ids: '2'"),
        ([1, [2]], "row 2, hash_ids: a list"),
        ("1,2", "row 2, hash_ids: '1,2' (allowed: a list"),
        ({"1": 2}, "row 2, hash_ids: an object (allowed: a list"),
    ],
)
def test_hash_ids_that_do_not_go_with_the_prompt(hash_ids: Any, told: str) -> None:
    assert told in refusal(mooncake(call(hash_ids=[1, 2]), call(hash_ids=hash_ids)))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"timestamp": 1, "input_length": 6', "row 2 is not JSON ("),  # cut off
        ("[1, 2]", "row 2 is no object"),
        ("7", "row 2 is no object"),
        ('{"timestamp": ' + "9" * 5_000 + "}", "row 2 is not JSON ("),
        ('{"hash_ids": ' + "[" * 100_000, "row 2 nests lists and objects too deep"),
        ('{"a":' * 100_000, "row 2 nests lists and objects too deep"),
    ],
    ids=["cut", "list", "number", "digits", "lists", "objects"],
)
def test_a_line_that_is_no_object(line: str, told: str) -> None:
    assert told in refusal(mooncake(call()) + line)


def test_deep_json_in_the_first_line() -> None:
    assert "too deep" in refusal('{"hash_ids": ' + "[" * 100_000)
    assert "too deep" in refusal('{"itls": ' + "[" * 100_000)


@pytest.mark.parametrize("text", ["", "\n\n", " \n", "\ufeff"])
def test_an_empty_file(text: str) -> None:
    assert refusal(text) == "trace: the file is empty (allowed: a header and a row or more)"
    assert refusal(packed(text)) == refusal(text)


def test_a_header_alone() -> None:
    assert refusal(AZURE).startswith("trace: no request in 0 rows of data")


def test_failed_calls_alone() -> None:
    text = burstgpt(("0", "5", "0"), ("1", "0", "7"))
    assert refusal(text).startswith("trace: no request in 2 rows of data, 2 of them without")


@pytest.mark.parametrize(
    "text",
    [
        "time,prompt,answer\n1,2,3\n",
        "TIMESTAMP;ContextTokens;GeneratedTokens\n1;2;3\n",
        "TIMESTAMP,ContextTokens\n2023-11-16 18:00:00,5\n",
        GOOD,
        '"TIMESTAMP,ContextTokens,GeneratedTokens',
        "[{}]",
        '{"prompt": "hello"}\n',
        "PK\x03\x04 a zip file",
        "x" * 100_000,
    ],
    ids=range(9),
)
def test_no_known_format_names_those_that_are(text: str) -> None:
    sentence = refusal(text)
    assert sentence.startswith("trace: no known format; it begins with ")
    for name in ("Azure", "BurstGPT", "Mooncake", "vllm bench"):
        assert name in sentence


def test_a_column_named_twice() -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens,contexttokens\n"
    assert refusal(text) == "trace: row 1 names the column ContextTokens twice (allowed: once)"


@pytest.mark.parametrize("row", ["2023-11-16 18:00:00,5", "2023-11-16 18:00", f"{GOOD},7", "5,,,,"])
def test_a_row_of_another_number_of_values(row: str) -> None:
    sentence = refusal(azure(GOOD) + row)
    assert sentence.startswith(
        f"trace: row 3 holds {len(row.split(','))} values for the header's 3"
    )


def test_quotes_that_do_not_close() -> None:
    assert "row 3 has quotes that do not close" in refusal(azure(GOOD, '2023-11-16 18:00:00,"5,6'))


def test_another_encoding_names_the_row() -> None:
    text = (azure(GOOD) + "2023-11-16 18:00:00,5,6 tokens é").encode("latin-1")
    assert refusal(text) == (
        "trace: row 3 holds the byte 0xe9, which is no UTF-8 (allowed: text in UTF-8)"
    )
    assert "UTF-16" in refusal(azure(GOOD).encode("utf-16"))
    assert "row 1 holds a NUL byte" in refusal(azure(GOOD).encode("utf-16-le"))
    body = json.dumps(bench()).encode().replace(b"made-up", b"made\xe9up")
    assert "row 1 holds a byte that is no UTF-8" in refusal(body)


def test_a_nul_byte_names_the_row() -> None:
    assert "row 3 holds a NUL byte" in refusal(azure(GOOD) + "2023\0-11")


def test_rows_are_counted_as_an_editor_does() -> None:
    """Blank lines count, and so does a row beyond the first block that is read."""
    rows = [GOOD] * 20_000
    assert len("\n".join(rows)) > 2 * lines.BLOCK_BYTES
    assert "row 20,004, ContextTokens" in refusal(azure(*rows, "", " ", "2023-11-16 18:00:00,x,6"))


def test_truncated_and_damaged_gzip() -> None:
    whole = packed(azure(*[GOOD] * 1_000))
    assert "the gzip data ends before its end" in refusal(whole[:-6])
    assert "the gzip data is damaged" in refusal(whole[:-8] + b"\1" * 8)
    assert "the gzip data is damaged" in refusal(whole + b"more")
    assert "the gzip data is damaged" in refusal(b"\x1f\x8b" + b"\1" * 40)
    assert refusal(b"\x1f\x8b").startswith("trace: the gzip data ends before its end")


def test_gzip_within_gzip_is_no_trace() -> None:
    assert "row 1 holds" in refusal(gzip.compress(packed(azure(GOOD))))


@pytest.mark.parametrize(("byte", "told"), [(b"\0", "NUL byte"), (b"\n", "blank"), (b"7", "bytes")])
def test_a_bomb_of_one_byte_ends_early(byte: bytes, told: str) -> None:
    """200 MB in 200 kB: refused in the first blocks, whatever they hold."""
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb", compresslevel=1) as file:
        for _ in range(20):
            file.write(byte * 10_000_000)
    source = io.BytesIO(bomb.getvalue())
    with pytest.raises(ValueError, match=told):
        read_trace(source, name="bomb")
    assert source.tell() < len(bomb.getvalue()) / 4


def test_a_bomb_of_good_rows_ends_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_TEXT_BYTES", 300_000)
    text = azure(*[GOOD] * 20_000)
    assert "unpacks to more than 300,000 bytes" in refusal(packed(text))
    assert "is larger than 300,000 bytes" in refusal(text)
    assert len(read(text, first=1_000)) == 1_000  # stops before it gets there


def test_a_line_longer_than_the_bound() -> None:
    long = "5" * (lines.MAX_LINE_BYTES + lines.BLOCK_BYTES)
    assert "row 3 is longer than 1,048,576 bytes" in refusal(azure(GOOD) + long)


def test_more_than_the_most_requests() -> None:
    text = azure(*[GOOD] * 100)
    sentence = refusal(text, most_requests=99)
    assert sentence.startswith("trace: more than 99 requests")
    assert "--first N" in sentence
    assert len(read(text, most_requests=100)) == len(read(text, most_requests=99, first=99)) + 1


def test_more_runs_of_hash_ids_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "MAX_HASH_RUNS", 5)
    rows = [call(hash_ids=[7, n]) for n in range(2, 0, -1)]  # two runs each
    assert len(read(mooncake(*rows))) == 2
    assert "more than 5 separate runs" in refusal(mooncake(*rows, *rows))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"start_times": None, "request_rate": None}, "start_times: missing, and request_rate too"),
        ({"input_lens": None}, "input_lens: missing"),
        ({"itls": None}, "itls: missing"),
        ({"output_lens": [3]}, "output_lens: 1 values (allowed: 2"),
        ({"start_times": [0, float("nan")]}, "start_times: request 1: nan"),
        ({"start_times": [0, 1e308]}, "start_times: request 1: 1e+308"),
        ({"input_lens": [10, -1]}, "input_lens: request 1: -1"),
        ({"input_lens": [10, 0]}, "input_lens: request 1: 0"),
        ({"output_lens": [3, 1.5]}, "output_lens: request 1: 1.5"),
        ({"errors": ["no", "no"]}, "none of 2 requests succeeded"),
    ],
)
def test_a_wrong_result_of_vllm_bench(changes: dict[str, Any], told: str) -> None:
    assert told in refusal(json.dumps(bench(**changes)))


def test_a_result_of_vllm_bench_that_is_cut_off() -> None:
    assert "not JSON" in refusal(json.dumps(bench())[:-20])


def test_a_result_of_vllm_bench_that_is_too_long() -> None:
    text = json.dumps(bench()).encode() + b" " * 20_000_000
    assert "more than 20,000,000 bytes is too long" in refusal(text)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"first": 0}, "first: 0 is not a whole number from 1"),
        ({"first": 1.5}, "first: 1.5"),
        ({"time_scale": 0.0}, "time_scale: 0.0"),
        ({"time_scale": float("nan")}, "time_scale: nan"),
        ({"window_s": (-1.0, 5.0)}, "window_s: -1.0"),
        ({"window_s": (5.0, 5.0)}, "window_s: 5.0 is not a number above 5"),
        ({"window_s": (5.0, float("nan"))}, "window_s: nan"),
        ({"most_requests": 0}, "most_requests: 0"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], told: str) -> None:
    assert told in refusal(azure(GOOD), **options)


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"trace: gone\.csv cannot be read \(No such file"):
        read_trace(tmp_path / "gone.csv", name="gone.csv")
    with pytest.raises(ValueError, match="trace: folder is not a file"):
        read_trace(tmp_path, name="folder")


def test_a_request_too_long_after_the_first() -> None:
    """1e12 ms is the latest arrival: 2000 to 2099 is longer."""
    text = azure("2000-01-01 00:00:00,5,6", "2099-01-01 00:00:00,5,6")
    assert "ms after the first (allowed: up to 1e+12 ms)" in refusal(text)
