"""A file's lines, read in bounded memory: packed or plain, with a bound on everything."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

BLOCK_BYTES = 1 << 17
MAX_LINE_BYTES = 1 << 20
MAX_TEXT_BYTES = 1 << 30
MAX_BLANK_LINES = 1_000
GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Progress = Callable[[int], None]


def blocks(source: BinaryIO, *, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield a file's bytes in blocks, unpacked where it begins as gzip does.

    progress: called with the bytes of the file that have been read.

    Raises:
        ValueError: damaged or truncated gzip, more than `MAX_TEXT_BYTES` in all.
    """
    counted = _Counted(source, progress)
    packed = counted.begins_with(GZIP_MAGIC)
    read = (
        gzip.GzipFile(fileobj=cast(BinaryIO, counted), mode="rb").read if packed else counted.read
    )
    total = 0
    while True:
        try:
            block = read(BLOCK_BYTES)
        except EOFError:
            raise ValueError(
                "trace: the gzip data ends before its end (allowed: a whole file)"
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"trace: the gzip data is damaged ({str(error)[:80]})") from error
        if not block:
            return
        total += len(block)
        if total > MAX_TEXT_BYTES:
            what = "unpacks to more than" if packed else "is larger than"
            raise ValueError(f"trace: the file {what} {MAX_TEXT_BYTES:,} bytes (allowed: up to it)")
        yield block


class _Counted:
    """A reader that fills its blocks, looks ahead at its begin, and tells how far it is."""

    def __init__(self, source: BinaryIO, progress: Progress | None) -> None:
        self._source, self._begin, self._progress = source, b"", progress
        self._read = 0

    def begins_with(self, magic: bytes) -> bool:
        self._begin = self.read(len(magic))
        return self._begin == magic

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, fewer only at the end of the file."""
        block, self._begin = self._begin, b""
        while len(block) < size and (more := self._source.read(size - len(block))):
            block += more
            self._read += len(more)
        if self._progress is not None:
            self._progress(self._read)
        return block


def lines(text_blocks: Iterator[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, each with its number from 1, as editors show it.

    Raises:
        ValueError: text that is not UTF-8, NUL bytes, a line longer than `MAX_LINE_BYTES`, a
            long run of blank lines.
    """
    row, rest, begun, blank = 0, b"", False, 0

    def told(data: bytes) -> Iterator[tuple[int, str]]:
        nonlocal row, blank
        for line in _text(data, row).split("\n"):
            row += 1
            if line and not line.isspace():
                blank = 0
                yield row, line.removesuffix("\r")
                continue
            blank += 1
            if blank > MAX_BLANK_LINES:
                raise ValueError(
                    f"trace: row {row:,} is one of more than {MAX_BLANK_LINES:,} blank lines in a "
                    "row (allowed: rows of data)"
                )

    for block in text_blocks:
        if not begun:
            begun = True
            if block.startswith(UTF16_MARKS):
                raise ValueError("trace: the file is text in UTF-16 (allowed: UTF-8)")
            block = block.removeprefix(BYTE_ORDER_MARK)
        data = rest + block
        nul = data.find(b"\0")
        if nul >= 0:
            at = row + data.count(b"\n", 0, nul) + 1
            raise ValueError(f"trace: row {at:,} holds a NUL byte (allowed: text in UTF-8)")
        whole, end, rest = data.rpartition(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            at = row + whole.count(b"\n") + bool(end) + 1
            raise ValueError(
                f"trace: row {at:,} is longer than {MAX_LINE_BYTES:,} bytes (allowed: up to them)"
            )
        if end:
            yield from told(whole)
    if rest:
        yield from told(rest)


def _text(data: bytes, rows_before: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = rows_before + data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"trace: row {row:,} holds the byte 0x{data[error.start]:02x}, which is no UTF-8 "
            "(allowed: text in UTF-8)"
        ) from None
