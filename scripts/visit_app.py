"""Visit every page of a served app as a browser does, without one: health, page, script runs.

python scripts/visit_app.py http://localhost:8501 [SECONDS TO WAIT FOR HEALTH]

Prints a line for each page and ends with 1 where one shows an error. It needs what the app
needs and nothing more, so that it also runs where only requirements.txt is installed.
"""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets import Origin
from websockets.sync.client import ClientConnection, connect

ANSWER_S = 60.0
MOST_MESSAGE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Visit:
    """What a page's first run gave.

    pages: all that the app offers, by their path; the first is the one without.
    errors: what a visitor would have seen of them, empty where all went well.
    """

    elements: int
    errors: tuple[str, ...]
    pages: tuple[str, ...]


def main(address: str, wait_s: float = 0.0) -> int:
    """Visit all pages and return an exit code."""
    address = address.rstrip("/")  # may end in a path, as behind a proxy
    wait_for_health(address, wait_s)
    page = fetched(f"{address}/")
    if '<div id="root">' not in page:
        print(f"/: no Streamlit page but {page[:80]!r}")
        return 1
    failed = False
    first = visit(address, "")
    for path in first.pages:
        seen = visit(address, path) if path else first
        print(f"/{path}: {seen.elements} elements, {'; '.join(seen.errors) or 'no error'}")
        failed |= bool(seen.errors)
    return int(failed or not first.pages)


def fetched(url: str) -> str:
    """Return what is at an address."""
    with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
        return str(answer.read().decode("utf-8"))


def wait_for_health(address: str, wait_s: float) -> None:
    """Return when the server answers `ok`.

    Raises:
        OSError: it did not in time.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            if fetched(f"{address}/_stcore/health") == "ok":
                return
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(0.1)


def visit(address: str, path: str) -> Visit:
    """Return what the first run of a page sends to a visitor."""
    stream = f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    # A server with XSRF protection takes a socket from its own pages only.
    origin = Origin("{0.scheme}://{0.netloc}".format(urlsplit(address)))
    with connect(stream, origin=origin, max_size=MOST_MESSAGE_BYTES) as socket:
        asked = BackMsg()
        asked.rerun_script.page_name = path
        asked.rerun_script.context_info.url = f"{address}/{path}"
        asked.rerun_script.context_info.timezone = "UTC"
        socket.send(asked.SerializeToString())
        elements = 0
        errors: list[str] = []
        pages: tuple[str, ...] = ()
        for message in messages(socket):
            kind = message.WhichOneof("type")
            if kind == "delta":
                elements += 1
                errors += error_of(message.delta)
            elif kind == "page_not_found":
                errors.append(f"no page {message.page_not_found.page_name}")
            elif kind == "navigation":
                offered = message.navigation.app_pages
                pages = tuple("" if page.is_default else page.url_pathname for page in offered)
            elif kind == "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    break
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    errors.append("app.py does not compile")
                    break
    return Visit(elements=elements, errors=tuple(errors), pages=pages)


def messages(socket: ClientConnection) -> Iterator[ForwardMsg]:
    """Yield what the server sends."""
    while True:
        message = ForwardMsg()
        message.ParseFromString(socket.recv(timeout=ANSWER_S, decode=False))
        yield message


def error_of(delta: Delta) -> list[str]:
    """Return what an element says went wrong."""
    element = delta.new_element
    if element.WhichOneof("type") == "exception":
        return [f"{element.exception.type}: {element.exception.message}"]
    if element.WhichOneof("type") == "alert" and element.alert.format == Alert.ERROR:
        return [element.alert.body]
    return []


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], *map(float, sys.argv[2:3])))
    except OSError as problem:
        sys.exit(f"{sys.argv[1]}: {problem}")
