"""`python -m s11`."""

import sys

if __name__ == "__main__":
    try:
        from s11.cli import main

        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a sign shows another
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
