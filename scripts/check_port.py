"""Say in one line that a port cannot be had, before Streamlit starts (exit 1)."""

import contextlib
import errno
import socket
import sys


def main() -> None:
    host, port_text = sys.argv[1:]
    if not (port_text.isdecimal() and 1 <= int(port_text) <= 65535):
        sys.exit(f"s11: PORT={port_text} is not a port; allowed: 1 to 65535")
    refusals: list[OSError] = []
    try:
        # "localhost" can be two addresses, of which a machine may lack one.
        candidates = socket.getaddrinfo(host, int(port_text), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", error)
        sys.exit(f"s11: ADDRESS={host} is not an address of this machine ({reason})")
    for family, kind, protocol, _, address in candidates:
        try:
            with contextlib.closing(socket.socket(family, kind, protocol)) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
        except OSError as error:
            refusals.append(error)
    taken = [error for error in refusals if error.errno == errno.EADDRINUSE]
    if taken:
        sys.exit(f"s11: port {port_text} on {host} is taken; try: make app PORT=8600")
    if len(refusals) == len(candidates):
        sys.exit(f"s11: cannot listen on {host}:{port_text} ({refusals[-1].strerror})")


if __name__ == "__main__":
    main()
