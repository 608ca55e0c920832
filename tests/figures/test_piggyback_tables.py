"""The tables behind the piggybacking page's pictures, and SARATHI's figures as it gives them."""

import pytest

from s11.catalog import MODELS, Deployment
from s11.exports import to_csv
from s11.figures.piggyback_tables import (
    curve_columns,
    is_sarathis,
    many_columns,
    ride_columns,
    sarathi_columns,
    share_columns,
    tiles_columns,
)
from s11.piggyback import step_curve, tile_steps
from s11.piggyback_rides import (
    chunk_share,
    decode_share,
    ride,
    ride_by_decodes,
)

SARATHI = Deployment(model=MODELS["llama-13b"], gpu="a6000")


def tables(deployment):
    told = ride(deployment, prefill_tokens=992, start_token=0, decodes=32, context_tokens=1024)
    return [
        curve_columns(step_curve(deployment, 0)),
        tiles_columns(tile_steps(deployment, 128)),
        ride_columns(told),
        many_columns(
            ride_by_decodes(deployment, prefill_tokens=992, start_token=0, context_tokens=1024)
        ),
        share_columns(chunk_share(deployment, 992), decode_share(deployment, 32)),
    ]


def test_columns_are_equally_long_and_become_csv():
    for columns in (*tables(SARATHI), sarathi_columns(SARATHI)):
        (length,) = {len(values) for values in columns.values()}
        assert len(to_csv(columns).splitlines()) == length + 1


def test_parts_of_the_three_steps_add_up():
    columns = ride_columns(
        ride(SARATHI, prefill_tokens=992, start_token=0, decodes=32, context_tokens=1024)
    )
    for row in range(3):
        parts = [columns[name][row] for name in columns if name.endswith("_ms")]
        assert sum(parts) == pytest.approx(2 * columns["step_ms"][row], abs=1e-3)


def test_shares_add_up_to_a_hundred():
    columns = tables(SARATHI)[-1]
    for kind in ("chunk", "decodes"):
        shares = [columns[f"{kind}_{part}_pct"] for part in ("linear", "attention", "rest")]
        assert [sum(three) for three in zip(*shares, strict=True)] == pytest.approx(
            [100] * len(shares[0]), abs=1e-3
        )


def test_next_token_is_told_of_every_count_but_the_last():
    columns = tiles_columns(tile_steps(SARATHI, 128))
    assert columns["tokens"] == list(range(64, 193))
    assert columns["next_token_adds_ms"][-1] is None
    linear = columns["linear_ms"]
    assert columns["next_token_adds_ms"][64] == pytest.approx(linear[65] - linear[64], abs=2e-4)


def test_sarathis_figures_as_the_paper_gives_them():
    columns = sarathi_columns(SARATHI)
    paper = dict(zip(columns["LLaMA-13B on A6000"], columns["SARATHI (ms)"], strict=True))
    # (223.2 + 15.2 - 224.8 - 10) / 3 = 1.2; (44.28 + 5.68) / 4 = 12.49.
    assert paper["a decode aboard"] == 1.2
    assert paper["a decode alone"] == 12.49
    assert paper["257 tokens: linear"] == 92.33
    ours = dict(zip(columns["LLaMA-13B on A6000"], columns["ours (ms)"], strict=True))
    assert 0 < ours["a decode aboard"] < ours["a decode alone"]
    assert ours["128 tokens: linear"] < ours["256 tokens: linear"] < ours["257 tokens: linear"]


@pytest.mark.parametrize(
    ("deployment", "is_theirs"),
    [
        (SARATHI, True),
        (Deployment(model=MODELS["llama-13b"], gpu="a6000", precision="fp8"), False),
        (Deployment(model=MODELS["llama-13b"], gpu="a6000", tensor_parallel=2), False),
        (Deployment(model=MODELS["llama-2-13b"], gpu="a6000"), False),
    ],
)
def test_only_their_machine_is_theirs(deployment, is_theirs):
    assert is_sarathis(deployment) is is_theirs
