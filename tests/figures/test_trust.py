"""The trust page's pictures: valid, white, fitting a phone, with what they say drawn."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.figures.trust import LOOKS, error_figure, scatter_figure
from s11.figures.trust_info import QUANTITIES, log_ticks, sentence, trust_alt, trust_info
from s11.validation.errors import Comparison, error_row
from s11.validation.snapshot import Points, Snapshot, snapshot


def made(*groups):
    """A snapshot of (GPU, group, measured, predicted) of TPOT or, without a group, products."""
    rows, points = [], []
    for gpu, group, measured, predicted in groups:
        place = {
            "file": "end_to_end.csv" if group else "gemm.csv",
            "gpu": gpu,
            "quantity": "mean_tpot_ms" if group else "latency_ms",
            "group": group or "all",
            "calibrated": gpu != "b200_sxm",
            "measured": np.array(measured),
            "predicted": np.array(predicted),
        }
        rows.append(error_row(Comparison(**place)))
        labels = tuple(f"run {n}" for n in range(len(measured))) if group else ()
        points.append(Points(**place, total=len(measured), labels=labels))
    return Snapshot(
        date="2026-01-02",
        constants_date="2026-01-01",
        sources=(),
        rows=tuple(rows),
        points=tuple(points),
        left_out=(),
    )


PRODUCTS = made(
    ("a100_sxm", None, [1.0, 2.0], [1.05, 1.6]),  # +5%, -20%
    ("b200_sxm", None, [0.01], [0.011]),  # +10%
)
RUNS = made(("h100_sxm", "vllm", [10.0, 20.0], [10.0, 20.0]), ("h100_sxm", "trtllm", [9.0], [8.1]))
EMPTY = made()


@pytest.mark.parametrize("title", QUANTITIES)
def test_what_ships_is_drawn_valid_and_white(title):
    info = trust_info(snapshot(), title)
    assert info.series
    for spec in (scatter_figure(info), error_figure(info)):
        go.Figure(spec)  # raises on any unknown name or impossible value
        assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
        json.dumps(spec["layout"]["meta"], allow_nan=False)
        head, *caption = spec["layout"]["title"]["text"].split("<br>")
        assert len(head) - len("<b></b>") <= 45
        for line in caption:
            assert len(line.split(">")[1].split("<")[0]) <= 60
        told = " ".join(caption)
        assert "s11" in told
        assert ("s11 simulation" in told) == (info.quantity.file == "end_to_end.csv")


def test_both_axes_are_one_and_the_same():
    layout = scatter_figure(trust_info(PRODUCTS, "Dense products"))["layout"]
    across, up = layout["xaxis"], layout["yaxis"]
    assert across["type"] == up["type"] == "log"
    assert across["range"] == up["range"]
    assert across["tickvals"] == up["tickvals"]
    assert (up["scaleanchor"], up["scaleratio"]) == ("x", 1)
    assert across["title"]["text"].endswith("(ms)")
    assert up["title"]["text"].endswith("(ms)")
    # From 0.01 / 1.25 to 2 x 1.25 ms.
    assert 10 ** np.array(across["range"]) == pytest.approx([0.008, 2.5])


def test_identity_and_band():
    low, high, line, *_ = scatter_figure(trust_info(PRODUCTS, "Dense products"))["data"]
    np.testing.assert_allclose(line["y"], line["x"])
    np.testing.assert_allclose(low["y"], 0.9 * line["x"])
    np.testing.assert_allclose(high["y"], 1.1 * line["x"])
    assert high["fill"] == "tonexty"


def test_a_point_lies_where_it_was_measured_and_tells_its_error():
    spec = scatter_figure(trust_info(PRODUCTS, "Dense products"))
    a100, b200 = spec["data"][3:]
    assert a100["x"].tolist() == [1.0, 2.0]
    assert a100["y"].tolist() == [1.05, 1.6]
    assert [row[2] for row in a100["customdata"]] == pytest.approx([5, -20])
    assert b200["name"] == "B200 180 GB SXM (not calibrated)"
    errors = error_figure(trust_info(PRODUCTS, "Dense products"))["data"]
    assert errors[0]["y"].tolist() == pytest.approx([5, -20])


def test_gpus_differ_in_colour_and_form():
    assert len({colour for colour, _ in LOOKS.values()}) == len(LOOKS)
    assert len({symbol for _, symbol in LOOKS.values()}) == len(LOOKS)


def test_engines_differ_in_form_and_name():
    vllm, trtllm = scatter_figure(trust_info(RUNS, "TPOT"))["data"][3:]
    assert (vllm["name"], trtllm["name"]) == (
        "H100 80 GB SXM, vLLM",
        "H100 80 GB SXM, TensorRT-LLM",
    )
    assert vllm["marker"]["symbol"] != trtllm["marker"]["symbol"]
    assert vllm["customdata"][1][0] == "<br>run 1"


def test_points_beyond_the_frame_are_counted():
    far = made(("l40s", None, [1.0, 1.0, 1.0], [3.0, 1.0, 0.2]))  # +200%, none, -80%
    layout = error_figure(trust_info(far, "Dense products"))["layout"]
    assert layout["yaxis"]["range"] == [-100, 100]
    assert "1 beyond the frame" in layout["title"]["text"]


def test_sentence_and_alt_say_the_numbers():
    info = trust_info(PRODUCTS, "Dense products")
    told = sentence(info)
    # (5 + 20) / 2 = 12.5; (5 - 20) / 2 = -7.5; the inverted CDF's median of two is the smaller.
    assert "A100 80 GB SXM: mean **12.5%**, median 5.0%, nine of ten within 20.0%" in told
    assert "on average 7.5% too little (2 points)" in told
    assert "on average 10.0% too much" in told
    assert "2 of the 3 points lie within ±10%" in told
    assert "mean absolute error 12.5%" in trust_alt(info)
    assert "no bias" in sentence(trust_info(RUNS, "TPOT"))


def test_nothing_measured_is_an_empty_labelled_picture():
    info = trust_info(EMPTY, "All-reduce")
    for spec in (scatter_figure(info), error_figure(info)):
        go.Figure(spec)
    assert "nothing measured" in scatter_figure(info)["layout"]["title"]["text"]
    assert sentence(info) == "All-reduce: nothing was measured."


def test_ticks_of_logarithmic_axes():
    assert log_ticks(4, 60) == ([5, 10, 20, 50], ["5", "10", "20", "50"])
    values, texts = log_ticks(0.004, 2_000)
    assert values == pytest.approx([0.01, 0.1, 1, 10, 100, 1000])
    assert texts == ["0.01", "0.1", "1", "10", "100", "1,000"]
