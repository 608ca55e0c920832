"""The prefix cache's blocks by content: where each text's are, and who goes first when idle.

Neighbours of one text that are held, given back and found together are one object.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush


class Stretch:
    """The blocks `low` to `high` of one text, and how many requests hold them.

    released: once idle, the number of the release that made it so.
    rest: the stretch that was its upper part until it was split.
    """

    __slots__ = ("high", "holders", "low", "owner", "released", "rest")

    def __init__(self, owner: Hashable, low: int, high: int) -> None:
        self.owner, self.low, self.high = owner, low, high
        self.holders, self.released = 1, 0
        self.rest: Stretch | None = None


class _Text:
    """The cached stretches of one text. Two of them are of the same blocks or have none in common.

    lows: where they begin, ascending.
    same: by where they begin, those of the same blocks, the first that was cached in front.
    """

    __slots__ = ("lows", "same")

    def __init__(self) -> None:
        self.lows: list[int] = []
        self.same: dict[int, list[Stretch]] = {}


class CachedBlocks:
    """Blocks that can be found by content, and the queue of those that nobody holds.

    The queue goes by release, the longest ago first, and within one from the last block down.

    version: changes whenever what was found last can have changed.
    looked_at: whose texts were looked at for it.
    """

    def __init__(self) -> None:
        self.texts: dict[Hashable, _Text] = {}
        # A heap: release, -low, and what is idle: None is one block that cannot be found. Where
        # someone has come to hold it since, an entry is outdated.
        self.idle: list[tuple[int, int, Stretch | None]] = []
        self.releases = 0
        self.version = 0
        self.looked_at: set[Hashable] = set()

    def find(self, parts: Iterable[tuple[float, Hashable]], most: int) -> list[tuple[Stretch, int]]:
        """Return the cached stretches, and up to where, that begin a request of these texts.

        parts: after which block each text ends, and whose it is.
        most: the blocks that may be found.
        """
        hits: list[tuple[Stretch, int]] = []
        block = 0
        self.looked_at = set()
        for end, owner in parts:
            self.looked_at.add(owner)
            text = self.texts.get(owner)
            until = most if end > most else int(end)
            while block < until:
                same = None if text is None else text.same.get(block)
                if same is None:
                    return hits
                first = same[0]
                block = first.high if first.high < until else until
                hits.append((first, block))
            if block == most:
                break
        return hits

    def hold(self, hits: Sequence[tuple[Stretch, int]]) -> list[Stretch]:
        """Hold what was found, and return it."""
        held = []
        for stretch, end in hits:
            if end < stretch.high:
                self._split(stretch, end)
            stretch.holders += 1
            held.append(stretch)
        return held

    def add(self, owner: Hashable, low: int, high: int, held: list[Stretch]) -> None:
        """Let blocks that a request has filled be found; add them to what it holds.

        held: all stretches of its beginning, up to `low`.
        """
        text = self.texts.get(owner)
        if text is None:
            text = self.texts[owner] = _Text()
        self.version += owner in self.looked_at
        while low < high:
            same = text.same.get(low)
            if same is None:
                low = self._add_new(text, Stretch(owner, low, high), held)
                continue
            if same[0].high > high:
                self._split(same[0], high)
            stretch = Stretch(owner, low, same[0].high)
            same.append(stretch)
            held.append(stretch)
            low = stretch.high

    def _add_new(self, text: _Text, stretch: Stretch, held: list[Stretch]) -> int:
        """Add what nobody has in the cache, up to what someone has; return up to where."""
        place = bisect_right(text.lows, stretch.low)
        if place < len(text.lows):
            stretch.high = min(stretch.high, text.lows[place])
        last = held[-1] if held else None
        if (
            last is not None
            and (last.owner, last.high) == (stretch.owner, stretch.low)
            and last.holders == 1
            and len(text.same[last.low]) == 1
        ):
            last.high = stretch.high
        else:
            text.lows.insert(place, stretch.low)
            text.same[stretch.low] = [stretch]
            held.append(stretch)
        return stretch.high

    def release(self, held: Sequence[Stretch], end: int, *, part: bool, queue: bool) -> int:
        """Let go of what a request holds; return how many blocks are idle by that.

        end: the block after the last that it holds of these.
        part: whether it holds one more that is not full, which cannot be found.
        queue: whether idle blocks can be needed; else none is ever evicted.
        """
        self.releases += 1
        freed = 0
        for stretch in _pieces(held, end):
            stretch.holders -= 1
            if stretch.holders:
                continue
            freed += stretch.high - stretch.low
            if queue:
                stretch.released = self.releases
                heappush(self.idle, (self.releases, -stretch.low, stretch))
        if part:
            freed += 1
            if queue:
                heappush(self.idle, (self.releases, -end, None))
        return freed

    def evict(self, blocks: int) -> None:
        """Take so many idle blocks away."""
        while blocks:
            released, _, stretch = self.idle[0]
            if stretch is None:
                heappop(self.idle)
                blocks -= 1
                continue
            if stretch.holders or stretch.released != released:
                heappop(self.idle)
                continue
            self.version += stretch.owner in self.looked_at
            text = self.texts[stretch.owner]
            stay = stretch.high - stretch.low - blocks
            if stay <= 0:
                heappop(self.idle)
                blocks -= stretch.high - stretch.low
                self._forget(text, stretch)
            elif len(text.same[stretch.low]) > 1:
                self._split(stretch, stretch.low + stay)
            else:
                stretch.high -= blocks
                return

    def _forget(self, text: _Text, stretch: Stretch) -> None:
        same = text.same[stretch.low]
        same.remove(stretch)
        if same:
            return
        del text.same[stretch.low]
        del text.lows[bisect_left(text.lows, stretch.low)]
        if not text.lows:
            del self.texts[stretch.owner]

    def _split(self, stretch: Stretch, at: int) -> None:
        """Make two of a stretch and of all of the same blocks."""
        text = self.texts[stretch.owner]
        uppers = text.same[at] = []
        insort(text.lows, at)
        for lower in text.same[stretch.low]:
            upper = Stretch(lower.owner, at, lower.high)
            upper.holders, upper.released, upper.rest = lower.holders, lower.released, lower.rest
            lower.high, lower.rest = at, upper
            uppers.append(upper)
            if not lower.holders and lower.released:
                heappush(self.idle, (lower.released, -at, upper))
        self.version += stretch.owner in self.looked_at


def _pieces(held: Sequence[Stretch], end: int) -> Iterator[Stretch]:
    """Give the stretches that a request holds, and what was split off them since."""
    for place, stretch in enumerate(held):
        until = held[place + 1].low if place + 1 < len(held) else end
        piece: Stretch | None = stretch
        while piece is not None:
            rest = piece.rest if piece.high < until else None
            yield piece
            piece = rest
