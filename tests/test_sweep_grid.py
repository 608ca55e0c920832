"""What a sweep varies: products, their order, and the table of what came of them."""

from dataclasses import replace
from typing import Any

import pytest

from s11 import EngineLimits, Experiment, Metrics, chapter_scenario
from s11.sweep_grid import Grid, kinds, table
from s11.sweeps import run
from tests.loads import load, request
from tests.test_sweep_run import TRAFFIC

DRAWN = Experiment(workload=TRAFFIC.workload())


def knobs(**values: Any) -> list[tuple[Any, ...]]:
    grid = Grid(base=DRAWN, source=TRAFFIC, **values)
    return [tuple(point.knobs.values()) for point in grid.points()]


def test_a_product_in_order_the_chunk_size_first() -> None:
    grid = Grid(
        base=DRAWN,
        source=TRAFFIC,
        chunk_tokens=(64, None),
        rate_per_s=(2.0, 1.0),
        token_budget=(128,),
    )
    assert grid.knobs() == ("rate_per_s", "token_budget", "chunk_tokens")
    assert [point.knobs for point in grid.points()] == [
        {"rate_per_s": 2.0, "token_budget": 128, "chunk_tokens": 64},
        {"rate_per_s": 2.0, "token_budget": 128, "chunk_tokens": None},
        {"rate_per_s": 1.0, "token_budget": 128, "chunk_tokens": 64},
        {"rate_per_s": 1.0, "token_budget": 128, "chunk_tokens": None},
    ]


def test_each_point_is_the_base_with_its_knobs() -> None:
    grid = Grid(
        base=DRAWN,
        source=TRAFFIC,
        rate_per_s=(2.0,),
        seed=(9,),
        policy=("vllm_v1",),
        token_budget=(256,),
        chunk_tokens=(64,),
    )
    (point,) = grid.points()
    assert point.variant.experiment() == Experiment(
        workload=replace(TRAFFIC, seed=9).at_rate(2.0).workload(),
        policy="vllm_v1",
        limits=EngineLimits(token_budget=256, chunk_tokens=64),
    )


def test_a_scheduler_without_a_chunk_size_stands_once() -> None:
    assert knobs(policy=("whole_prompt", "sglang"), chunk_tokens=(8, None, 16)) == [
        ("whole_prompt", None),
        ("sglang", 8),
        ("sglang", None),
        ("sglang", 16),
    ]
    whole = Grid(base=Experiment().chunking_off(), chunk_tokens=(8, 16)).points()
    assert [point.knobs for point in whole] == [{"chunk_tokens": None}]
    assert whole[0].variant.experiment() == Experiment().chunking_off()


def test_a_chunk_size_turns_chunking_on() -> None:
    base = Experiment(policy="vllm_v1", limits=EngineLimits(chunking=False))
    (point,) = Grid(base=base, chunk_tokens=(512,)).points()
    assert point.variant.experiment().chunking


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"seed": (1, 2, 1)}, "seed: 1 is given twice (allowed: each value once)"),
        ({"token_budget": (None, None)}, "token_budget: None is given twice"),
        (
            {"seed": tuple(range(101)), "chunk_tokens": tuple(range(1, 1_001))},
            "points: 101,000 are too many (allowed: 100,000)",
        ),
    ],
)
def test_grids_out_of_range_are_refused(values: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Grid(base=DRAWN, source=TRAFFIC, **values)
    assert str(caught.value).startswith(refusal)


def test_given_requests_are_swept_at_no_rate_and_no_seed() -> None:
    with pytest.raises(ValueError, match=r"^rate_per_s: 2 does not go with requests that are giv"):
        Grid(base=Experiment(), rate_per_s=(2.0,))
    with pytest.raises(ValueError, match=r"^seed: 2 does not go with requests that are not drawn"):
        Grid(base=Experiment(), seed=(2,))


def test_the_table_has_the_knobs_all_figures_and_the_refusals() -> None:
    """512 tokens: 4 + 9.216 + 1.2 ms; a budget of 8 is too small for 24 users."""
    grid = Grid(base=Experiment(), token_budget=(None, 8), chunk_tokens=(512,))
    points = grid.points()
    columns = table(points, run([point.variant for point in points]), grid.knobs())
    figures = list(Metrics.__dataclass_fields__)
    assert list(columns) == ["token_budget", "chunk_tokens", *figures, "refused"]
    assert {len(column) for column in columns.values()} == {2}
    assert columns["token_budget"] == [None, 8]
    assert columns["longest_stall_ms"] == [14.416, None]
    assert columns["finished_requests"] == [1, None]
    assert columns["refused"][0] is None
    assert columns["refused"][1].startswith("token_budget: 8 is less than the 24 streaming users")
    assert list(kinds(grid.knobs())) == list(columns)
    assert kinds(grid.knobs())["chunk_tokens"] is int


def test_without_values_it_is_the_base_alone() -> None:
    base = load(request("a", 5), users=2)
    (point,) = Grid(base=base).points()
    assert point.variant.experiment() == base
    assert chapter_scenario() == Grid(base=Experiment()).points()[0].variant.experiment().workload
