"""The printed table of the cost model's errors."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from s11.terminal import table
from s11.validation import Validation

COLUMNS = ("file", "GPU", "quantity", "rows", "points", "median", "mean", "p90", "bias")


def errors_table(validation: Validation) -> Group:
    """Return the errors, a row for each file, GPU, quantity and group; a sentence if none."""
    if not validation.rows:
        return Group(Text("Nothing could be compared: no row of a table is modelled."))
    rows = [
        (
            row.file,
            row.gpu + ("" if row.calibrated else " (inherited)"),
            row.quantity,
            row.group,
            f"{row.points:,}",
            f"{row.median_abs_error_pct:.1f}%",
            f"{row.mean_abs_error_pct:.1f}%",
            f"{row.p90_abs_error_pct:.1f}%",
            f"{row.bias_pct:+.1f}%",
        )
        for row in validation.rows
    ]
    return table(
        "Roofline cost model against measurements: absolute errors, and bias", COLUMNS, rows
    )
