"""Fifty visitors at once, without their browsers: what the server alone does for them.

Each visitor is a WebSocket session that speaks Streamlit's protocol: it opens a page by its link,
and then asks for one state of it after the other, as Back and Forward do. Their pages are mixed
and no two ask for the same state, so that no cache answers for another. What is measured is the
time from the question to the end of the answer; a failure on a page, in the protocol or in the
server's log is an error. Needs the development requirements; no browser.

    python benchmarks/crowd.py [--sessions 50] [--turns 10] [--pause-s 2.0] [--json]
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from ui import served  # type: ignore[import-not-found]  # its neighbour
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

PATIENCE_S = 120
MOST_MESSAGE_BYTES = 64 * 1024**2


def simulator(draw: random.Random) -> str:
    return f"chunk={draw.randint(64, 8_192)}&users={draw.randint(1, 200)}"


def machine(draw: random.Random) -> str:
    return f"model=Llama-3.1-8B&chunk={draw.randint(64, 8_192)}&users={draw.randint(1, 200)}"


def mask(draw: random.Random) -> str:
    return f"mask_chunk={draw.randint(1, 16)}&own_size={draw.randint(100, 511)}"


def prefix(draw: random.Random) -> str:
    return f"gap={draw.randint(0, 2_000)}"


def traffic(draw: random.Random) -> str:
    return f"seed={draw.randint(1, 1_000_000)}"


PAGES: list[tuple[str, Callable[[random.Random], str]]] = [
    *[("", simulator)] * 4,
    *[("", machine)] * 3,
    *[("mask", mask), ("prefix", prefix), ("traffic", traffic)],
]


class Visitor:
    """One session: its waits in seconds and its errors."""

    def __init__(self, number: int) -> None:
        self.draw = random.Random(number)
        self.page, self.state = PAGES[number % len(PAGES)]
        self.waits_s: list[float] = []
        self.errors: list[str] = []
        self.hash = ""

    async def visit(self, url: str, *, turns: int, pause_s: float) -> None:
        """Open the page, then ask for one state after the other."""
        address = url.replace("http", "ws", 1) + "/_stcore/stream"
        try:
            async with connect(
                address, subprotocols=[Subprotocol("streamlit")], max_size=MOST_MESSAGE_BYTES
            ) as socket:
                for _ in range(turns + 1):
                    await self._ask(socket)
                    await asyncio.sleep(pause_s * self.draw.uniform(0.5, 1.5))
        except (OSError, TimeoutError, ValueError) as error:
            self.errors.append(repr(error))

    async def _ask(self, socket: ClientConnection) -> None:
        ask = BackMsg()
        ask.rerun_script.query_string = self.state(self.draw)
        ask.rerun_script.page_script_hash = self.hash
        ask.rerun_script.page_name = "" if self.hash else self.page
        ask.rerun_script.is_history_navigation = bool(self.hash)
        begun_s = time.perf_counter()
        await socket.send(ask.SerializeToString())
        while True:
            told = ForwardMsg()
            told.ParseFromString(await asyncio.wait_for(socket.recv(decode=False), PATIENCE_S))
            kind = told.WhichOneof("type")
            if kind == "navigation":
                self.hash = told.navigation.page_script_hash
            if kind == "delta":
                self._look(told.delta.new_element)
            early = told.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            if kind == "script_finished" and not early:
                break
        self.waits_s.append(time.perf_counter() - begun_s)

    def _look(self, element: Element) -> None:
        shown = element.WhichOneof("type")
        if shown == "exception":
            self.errors.append(f"/{self.page}: {element.exception.type}")
        if shown == "alert" and "could not be" in element.alert.body:
            self.errors.append(f"/{self.page}: {element.alert.body[:200]}")


async def crowd(url: str, *, sessions: int, turns: int, pause_s: float) -> dict[str, Any]:
    """Return what all visitors saw."""
    first = Visitor(0)  # the server's first visitor waits for imports
    await first.visit(url, turns=0, pause_s=0)
    visitors = [Visitor(number) for number in range(sessions)]
    await asyncio.gather(*[one.visit(url, turns=turns, pause_s=pause_s) for one in visitors])
    opened_s = sorted([one.waits_s[0] for one in visitors if one.waits_s])
    waits_s = sorted([wait for one in visitors for wait in one.waits_s[1:]])
    if not waits_s:
        raise SystemExit(f"nobody was answered: {visitors[0].errors}")
    return {
        "sessions": sessions,
        "answers": len(waits_s),
        "errors": [error for one in [first, *visitors] for error in one.errors],
        "opened_s_p50": opened_s[len(opened_s) // 2],
        "opened_s_longest": opened_s[-1],
        "answer_s_p50": waits_s[int(0.50 * (len(waits_s) - 1))],
        "answer_s_p95": waits_s[int(0.95 * (len(waits_s) - 1))],
        "answer_s_longest": waits_s[-1],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--pause-s", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with served("app.py") as url:
        measured = asyncio.run(
            crowd(url, sessions=options.sessions, turns=options.turns, pause_s=options.pause_s)
        )
    if options.json:
        print(json.dumps(measured, indent=2))
    else:
        print(
            f"{measured['sessions']} sessions, {measured['answers']} answers, "
            f"{len(measured['errors'])} errors; opened in {measured['opened_s_p50']:.2f} s (p50), "
            f"{measured['opened_s_longest']:.2f} s at most; answered in "
            f"{measured['answer_s_p50']:.2f} s (p50), {measured['answer_s_p95']:.2f} s (p95), "
            f"{measured['answer_s_longest']:.2f} s at most"
        )
        for error in measured["errors"][:5]:
            print(error)
    raise SystemExit(1 if measured["errors"] else 0)


if __name__ == "__main__":
    main()
