"""The traffic page's search without chunking, beside its chunk sizes."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from s11.capacity_by_chunk import capacity_by_chunk
from s11.cli import _parser
from s11.commands import experiment_from
from s11.ui import traffic_runs
from s11.ui.traffic_command import capacity_command
from s11.ui.traffic_search import (
    CHUNK_SIZES,
    FIRST_PER_S,
    HIGH_PER_S,
    PRECISION,
    Search,
    found_of,
    search,
    searched,
    targets_of,
)
from s11.ui.traffic_setup import DrawnTraffic, Setup, Side

ROOT = Path(__file__).resolve().parents[2]


def setup(policy: str = "chunked") -> Setup:
    return Setup(
        source=DrawnTraffic(
            preset="openchat", rate_per_s=5.0, burstiness=1.0, request_count=30, seed=3
        ),
        side=Side(policy=policy, chunk_tokens=CHUNK_SIZES[0]),
        most_running=64,
        prefix_caching=False,
        machine=None,
        ttft_target_ms=2_000.0,
        itl_target_ms=50.0,
    )


@pytest.mark.parametrize("policy", ["chunked", "vllm_v1", "sglang", "slo_adaptive"])
def test_prompts_are_whole_and_no_budget_keeps_them_out(policy: str):
    experiment = searched(setup(policy), None, 7.0)
    assert not experiment.chunking
    assert experiment.limits.token_budget is None
    assert experiment.limits.max_seqs == 64
    assert experiment.workload == traffic_runs.at_rate(setup().source, 7.0)


def test_it_finds_what_the_commands_search_finds():
    asked = setup()
    whole = Search(asked)
    tried = [point for size, point in search(whole) if size is None]
    assert whole.finished
    assert whole.points[None] == tried
    command = capacity_command(asked, chunk_sizes=(128,), itl_p99_ms=(50.0,), trace_name="TRACE")
    told = experiment_from(_parser().parse_args(command.split(" ")[3:]))
    assert told.chunking_off().limits == searched(asked, None, 7.0).limits
    for found in capacity_by_chunk(
        lambda rate: asked_at(asked, rate),
        (None,),
        targets_of(asked),
        first_per_s=FIRST_PER_S,
        high_per_s=HIGH_PER_S,
        relative_precision=PRECISION,
    ):
        mine = found_of(tried, found.capacity.targets).highest_per_s
        assert mine == found.capacity.highest_per_s


def asked_at(asked: Setup, rate_per_s: float):
    own = Side(policy=asked.side.policy, chunk_tokens=None)
    bare = Setup(**{name: getattr(asked, name) for name in Setup.__slots__} | {"side": own})
    return bare.experiment(traffic_runs.at_rate(asked.source, rate_per_s))


def test_the_page_says_what_chunking_buys():
    app = AppTest.from_file(str(ROOT / "pages" / "traffic.py"), default_timeout=120)
    asked = {"request_count": "40", "traffic_mode": "Capacity", "step_cost": "The chapter's cost"}
    for name, value in asked.items():
        app.query_params[name] = value
    app.run()
    app.button(key="traffic_search").click().run()
    assert not app.exception
    told = [block.value for block in app.markdown]
    (said,) = [words for words in told if words.startswith("At a P99 ITL of")]
    assert "whole prompts" in said
    targets = [f"At a P99 ITL of {target} ms, " for target in (50, 25, 100)]
    assert all(words in said for words in targets)
    charts = [chart.proto for chart in app.get("plotly_chart")]
    assert "with whole prompts" in charts[0].alt
    assert "whole prompts: " in charts[1].alt
