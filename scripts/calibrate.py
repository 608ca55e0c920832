"""Fit every constant of the roofline cost model, and write s11/costs/constants.json.

    python scripts/calibrate.py --measured DIR [--date YYYY-MM-DD] [--output FILE]

The same files and date give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a file, not only with -m

from s11.catalog import GPUS  # noqa: E402
from s11.costs import constants  # noqa: E402
from scripts import calibrate_attention, calibrate_host, calibrate_linear  # noqa: E402

SCHEMA_VERSION = 1
SIGNIFICANT_DIGITS = 6
SOURCES = (
    "gemm, prefill_attention, decode_attention, all_reduce: ai-dynamo/aiconfigurator at commit "
    "095f58a (Apache-2.0), measured performance tables, thinned",
    "layer_linear, elementwise: microsoft/vidur at commit 7d47513 (MIT), profiling tables, summed "
    "per layer and thinned",
    "hosts: end_to_end, ai-dynamo/aiconfigurator at the same commit, its silicon samples",
)
# Whose dimensionless efficiencies stand in for what was not measured: the nearest architecture.
INHERITS = {
    "a100-40": "a100-80",
    "h200": "h100",
    "b200": "h100",
    "l4": "l40s",
    "l40s": "a40",
    "a40": "a100-80",
    "a6000": "a40",
}


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return value


def calibrate(measured: Path, day: str) -> dict[str, Any]:
    linear = calibrate_linear.fit(measured)
    attention = calibrate_attention.fit(measured)
    gpus = {}
    for name in GPUS:
        inherits = {"inherits": INHERITS[name]} if name in INHERITS else {}
        gpus[name] = inherits | linear.get(name, {}) | attention.get(name, {})
    document = {
        "schema_version": SCHEMA_VERSION,
        "date": day,
        "sources": list(SOURCES),
        "gpus": rounded(gpus),
    }
    # A host is what whole runs take beyond the kernels: it is fitted with the new ones in place.
    with mock.patch.object(constants, "document", return_value=document):
        constants.constants_of.cache_clear()
        document["hosts"] = rounded(calibrate_host.fit(measured))
    constants.constants_of.cache_clear()
    return document


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--measured", type=Path, required=True, help="folder of measured tables")
    parser.add_argument("--date", type=date.fromisoformat, default=date.today(), help="YYYY-MM-DD")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "s11" / "costs" / "constants.json", help="file"
    )
    arguments = parser.parse_args()
    document = calibrate(arguments.measured, arguments.date.isoformat())
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
