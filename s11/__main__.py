"""`python -m s11`."""

import sys

from s11.cli import main

if __name__ == "__main__":
    sys.exit(main())
