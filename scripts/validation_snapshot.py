"""Hold the cost model against measured tables, and write s11/validation/snapshot.json.

    python scripts/validation_snapshot.py --measured DIR [--date YYYY-MM-DD] [--output FILE]
    python scripts/validation_snapshot.py --measured DIR --leave-out [--date YYYY-MM-DD] …

With --leave-out it fits on halves of the shapes instead, holds the other halves against them, and
writes s11/validation/leave_out.json (some minutes). The same files, constants and date give the
same bytes. Both are to be run again after scripts/calibrate.py.
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a file, not only with -m

from s11.validation import leave_out, validate  # noqa: E402
from s11.validation.snapshot import document_of, text_of  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--measured", type=Path, required=True, help="folder of measured tables")
    parser.add_argument("--date", type=date.fromisoformat, default=date.today(), help="YYYY-MM-DD")
    parser.add_argument("--leave-out", action="store_true", help="errors on shapes left out")
    parser.add_argument("--output", type=Path, help="file")
    arguments = parser.parse_args()
    day = arguments.date.isoformat()
    try:
        if arguments.leave_out:
            from scripts.leave_out import left_out  # pandas and SciPy, which the rest needs not

            document = leave_out.document_of(left_out(arguments.measured), date=day)
        else:
            document = document_of(validate(arguments.measured), date=day)
    except ValueError as error:
        parser.error(str(error))
    name = "leave_out.json" if arguments.leave_out else "snapshot.json"
    output = arguments.output or ROOT / "s11" / "validation" / name
    output.write_text(text_of(document), encoding="utf-8")


if __name__ == "__main__":
    main()
