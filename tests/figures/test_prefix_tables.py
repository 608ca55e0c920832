"""The tables behind the prefix page's pictures, worked out by hand."""

import pytest

from s11.figures.prefix_blocks_info import blocks_info
from s11.figures.prefix_tables import block_columns, step_columns
from s11.prefix_blocks import admitted_blocks
from tests.prefix_runs import same_prompt_twice

# 1,024 tokens twice, chunks of 512: steps of 1,024, 512 and 128 tokens, nobody streams.
TWICE = same_prompt_twice()


def test_steps_of_all_four_runs_stand_one_below_the_other():
    columns = step_columns(TWICE)
    rows = list(zip(*columns.values(), strict=True))
    with_prefill = [row for row in rows if row[3]]
    assert [(row[0], row[3]) for row in with_prefill] == [
        ("neither", 1024),
        ("neither", 1024),
        *[("chunking only", 512)] * 4,
        ("cache only", 1024),
        ("cache only", 128),
        ("both", 512),
        ("both", 512),
        ("both", 128),
    ]
    assert with_prefill[-1][2] == pytest.approx(4 + 128 * 0.018)
    assert [row[4] for row in with_prefill] == [0] * 11


def test_blocks_are_counted_by_kind():
    info = blocks_info(
        admitted_blocks(TWICE.both.experiment, TWICE.both.result),
        request_ids=TWICE.both.result.requests.request_id,
        block_size=TWICE.both.experiment.limits.block_size,
        kv_blocks=None,
    )
    columns = block_columns(info)
    size = TWICE.both.experiment.limits.block_size
    assert columns["known_tokens"] == [1024, 1024]
    assert columns["hit (blocks)"] == [0, 896 // size]
    assert columns["computed (blocks)"] == [1024 // size, 0]
