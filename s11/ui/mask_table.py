"""The table of chunk sizes: the same bits or not, on both paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from s11.figures.key_difference_info import number
from s11.figures.mask_info import counted
from s11.ui.mask_checks import SameBitsRow, verdict

# Not colour alone: every verdict has a sign and a word.
SIGNS = {"identical": "✓", "rounding": "≈", "wrong": "✗", "differs": "✗"}

CSS = """<style>
.s11-bits{overflow-x:auto}
.s11-bits table{border-collapse:collapse;width:100%;font-size:1rem;
 font-variant-numeric:tabular-nums}
.s11-bits caption{text-align:left;padding-bottom:.4rem;font-weight:600}
.s11-bits th,.s11-bits td{padding:.35rem .6rem;text-align:right;white-space:nowrap;
 border-bottom:1px solid light-dark(#D5DCE4,#334050)}
.s11-bits thead th{vertical-align:bottom;font-weight:600;white-space:normal}
.s11-bits .word{text-align:left}
.s11-bits small{display:block;color:light-dark(#5A6675,#A3AFBD);font-weight:400}
.s11-bits .identical{color:light-dark(#006B4F,#4FD0AA);font-weight:600}
.s11-bits .rounding{color:light-dark(#805300,#F0B030);font-weight:600}
.s11-bits .wrong,.s11-bits .differs{color:light-dark(#A14400,#FF9F68);font-weight:600}
@media (max-width:640px){.s11-bits table{font-size:.75rem}
 .s11-bits th,.s11-bits td{padding:.3rem .15rem}
 .s11-bits tbody th{white-space:normal}}
</style>"""

HEAD = (
    "<thead><tr><th scope='col'>chunk<small>tokens</small></th>"
    "<th scope='col' class='word'>aligned tiles</th>"
    "<th scope='col' class='word'>plain products</th>"
    "<th scope='col'>|ΔK|<small>largest</small></th>"
    "<th scope='col'>|ΔV|<small>largest</small></th>"
    "<th scope='col'>ulp<small>largest</small></th></tr></thead>"
)


def table_html(rows: Sequence[SameBitsRow], *, caption: str) -> str:
    """Return the table, rows that are still computed and rows out of bounds included."""
    body = "".join(_row_html(row) for row in rows)
    return (
        f"{CSS}<div class='s11-bits' role='region' tabindex='0' aria-label='Chunk sizes'>"
        f"<table><caption>{caption}</caption>{HEAD}<tbody>{body}</tbody></table></div>"
    )


def table_columns(rows: Sequence[SameBitsRow]) -> dict[str, list[Any]]:
    """Return the computed rows of the table as columns."""
    checks = [row.check for row in rows if row.check is not None]
    return {
        "prompt_tokens": [check.prompt_tokens for check in checks],
        "chunk_tokens": [check.chunk_tokens for check in checks],
        "chunks": [check.chunks for check in checks],
        "divides_prompt": [int(check.divides_prompt) for check in checks],
        "aligned_tiles_identical": [int(check.tiled.identical) for check in checks],
        "plain_verdict": [verdict(check) for check in checks],
        "plain_largest_abs_key_difference": [_largest_key(check.plain) for check in checks],
        "plain_largest_abs_value_difference": [_largest_value(check.plain) for check in checks],
        "plain_largest_ulp": [_largest_ulp(check.plain) for check in checks],
        "rounding_tolerance": [check.rounding_tolerance for check in checks],
    }


def _row_html(row: SameBitsRow) -> str:
    notes = [counted(row.chunks, "chunk")]
    if not row.divides_prompt:
        notes = [f"uneven: {notes[0]}", f"last of {row.prompt_tokens % row.chunk_tokens}"]
    if row.own:
        notes.append("yours")
    head = f"<th scope='row'>{row.chunk_tokens}<small>{', '.join(notes)}</small></th>"
    if row.out_of_bounds:
        return f"<tr>{head}<td class='word' colspan='5'>not computed on this page</td></tr>"
    if row.check is None:
        return f"<tr>{head}<td class='word' colspan='5'>computing …</td></tr>"
    plain = row.check.plain
    words = ["identical" if row.check.tiled.identical else "differs", verdict(row.check)]
    cells = "".join(f"<td class='word {word}'>{SIGNS[word]} {word}</td>" for word in words)
    numbers = [number(_largest_key(plain)), number(_largest_value(plain))]
    numbers.append(f"{_largest_ulp(plain):,}")
    return f"<tr>{head}{cells}{''.join(f'<td>{text}</td>' for text in numbers)}</tr>"


def _largest_key(compared: Any) -> float:
    return float(max(compared.max_abs_key_diff))


def _largest_value(compared: Any) -> float:
    return float(max(compared.max_abs_value_diff))


def _largest_ulp(compared: Any) -> int:
    return int(max(*compared.max_ulp_key, *compared.max_ulp_value))
