"""The tree of beginnings that prompts' hash ids spell out: who has what in common.

Source of the ids: Mooncake's traces, kvcache-ai/Mooncake, FAST25-release/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from s11.workload import HASH_BLOCK_TOKENS, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedText:
    """Part of a prompt that others have too, from where the part before it ends.

    number: the same for the same text; numbers go on from the rows of the requests.
    """

    end_token: int
    number: int


def shared_texts(requests: Sequence[Request]) -> dict[int, list[SharedText]]:
    """Return by row of a request the parts of its beginning that others have too.

    Two requests have a hash block in common where all their ids up to it are equal: what an id
    says of what came before it is not relied on. A last block may be begun by one prompt and
    filled by another: common is what both have of it. Blocks that the same requests have in
    common are one part. Who has nothing in common with anyone is left out.
    """
    children: dict[tuple[int, int], int] = {}
    root = len(requests)
    seen = [0]  # by hash block, the root's included: how many requests have it
    paths: dict[int, list[int]] = {}
    for row, request in enumerate(requests):
        if not request.hash_ids:
            continue
        block, path = root, []
        for hash_id in request.hash_ids:
            block = children.setdefault((block, hash_id), root + len(seen))
            if block == root + len(seen):
                seen.append(0)
            seen[block - root] += 1
            path.append(block)
        paths[row] = path
    texts: dict[int, list[SharedText]] = {}
    for row, path in paths.items():
        counts = [seen[block - root] for block in path] + [1]
        parts = [
            SharedText(
                end_token=min((place + 1) * HASH_BLOCK_TOKENS, requests[row].prompt_tokens),
                number=block,
            )
            for place, block in enumerate(path)
            if counts[place + 1] < counts[place]  # the last that all of these have
        ]
        if parts:
            texts[row] = parts
    return texts
