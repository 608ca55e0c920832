"""Hold the cost model against measured tables, and write s11/validation/snapshot.json.

    python scripts/validation_snapshot.py --measured DIR [--date YYYY-MM-DD] [--output FILE]

The same files, constants and date give the same bytes. To be run again after scripts/calibrate.py.
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a file, not only with -m

from s11.validation import validate  # noqa: E402
from s11.validation.snapshot import document_of, text_of  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--measured", type=Path, required=True, help="folder of measured tables")
    parser.add_argument("--date", type=date.fromisoformat, default=date.today(), help="YYYY-MM-DD")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "s11" / "validation" / "snapshot.json", help="file"
    )
    arguments = parser.parse_args()
    try:
        validation = validate(arguments.measured)
    except ValueError as error:
        parser.error(str(error))
    document = document_of(validation, date=arguments.date.isoformat())
    arguments.output.write_text(text_of(document), encoding="utf-8")


if __name__ == "__main__":
    main()
