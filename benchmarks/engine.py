"""Engine speed in units of a plain Python loop: the same as `python -m s11 bench`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from s11.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
