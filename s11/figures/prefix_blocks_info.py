"""What the picture of the KV blocks shows, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from s11.prefix_blocks import AdmittedBlocks, BlockKind
from s11.words import count

MOST_ROWS, MOST_CELLS = 24, 80
NAMES = {
    BlockKind.HIT: "hit",
    BlockKind.NEW: "computed",
    BlockKind.EVICTED: "again: evicted",
    BlockKind.LAST_TOKEN: "again: last token",
    BlockKind.NOT_YET: "again: not yet",
    BlockKind.NOT_WHOLE: "again: partial",
    BlockKind.OUTPUT: "outputs",
}


@dataclass(frozen=True, slots=True, eq=False)
class BlocksInfo:
    """What the picture shows."""

    rows: tuple[AdmittedBlocks, ...]
    names: tuple[str, ...]  # (rows,)
    block_size: int
    kv_blocks: int | None

    @property
    def shown(self) -> tuple[AdmittedBlocks, ...]:
        """The rows that are drawn."""
        return self.rows[:MOST_ROWS]

    @property
    def widest(self) -> int:
        """The most blocks of a row."""
        return max([len(row.kinds) for row in self.shown], default=1)

    @property
    def blocks_per_cell(self) -> int:
        """Between two lines of the grid: a power of two."""
        cell = 1
        while self.widest / cell > MOST_CELLS:
            cell *= 2
        return cell

    def blocks(self, kind: BlockKind) -> int:
        """Return how many blocks are of one kind."""
        return sum(row.count(kind) for row in self.rows)

    @property
    def title(self) -> str:
        """The finding, in about 45 characters."""
        hits, evicted = self.blocks(BlockKind.HIT), self.blocks(BlockKind.EVICTED)
        wanted = sum(-(-row.known_tokens // self.block_size) for row in self.rows)
        if evicted:
            return f"{hits:,} of {wanted:,} blocks hit; {evicted:,} evicted"
        return f"{hits:,} of {wanted:,} prompt blocks are hits"

    @property
    def caption(self) -> list[str]:
        """The parameters."""
        pool = "no limit" if self.kv_blocks is None else count(self.kv_blocks, "block")
        cell = self.blocks_per_cell
        grid = "a cell is a block" if cell == 1 else f"a cell is {cell} blocks"
        return [
            f"blocks of {count(self.block_size, 'token')}, pool: {pool}",
            f"{grid}, numbers count blocks; vLLM V1, s11",
        ]


def blocks_info(
    rows: Sequence[AdmittedBlocks],
    *,
    request_ids: Sequence[str],
    block_size: int,
    kv_blocks: int | None,
) -> BlocksInfo:
    """Return what to draw: a row per admission."""
    names = [request_ids[row.request] + (", again" if row.resumed else "") for row in rows]
    return BlocksInfo(tuple(rows), tuple(names), block_size, kv_blocks)


def blocks_alt(info: BlocksInfo) -> str:
    """Return the blocks' numbers for those who cannot see them."""
    told = []
    for name, row in zip(info.names, info.shown, strict=False):
        parts = [f"{row.count(kind):,} {word}" for kind, word in NAMES.items() if row.count(kind)]
        told.append(f"{name}: {', '.join(parts)}")
    return f"KV blocks by request: {info.title}. {'. '.join(told)}."
