"""A spec in the form that the browser reads, checked by decoding it again."""

import base64
import json

import numpy as np
import pytest

from s11.figures.drawn import Drawn, as_json, plotly_js


@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "i4"])
def test_arrays_go_as_bytes(dtype: str):
    values = np.array([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    sent = json.loads(as_json({"data": [{"z": values}]}))["data"][0]["z"]
    assert (sent["dtype"], sent["shape"]) == (dtype, "2, 3")
    back = np.frombuffer(base64.b64decode(sent["bdata"]), dtype=f"<{dtype}").reshape(2, 3)
    assert back.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_what_a_browser_has_no_array_for_goes_as_a_list():
    values = np.array([1, 2**40])
    assert json.loads(as_json({"x": values}))["x"] == [1, 2**40]


def test_a_gap_is_null():
    assert json.loads(as_json({"x": [1.0, float("nan")]})) == {"x": [1.0, None]}


def test_a_drawn_figure_hands_its_spec_over():
    assert Drawn({"data": [], "layout": {"title": {"text": "x"}}}).to_dict()["layout"] == {
        "title": {"text": "x"}
    }


def test_plotly_js_is_in_the_installed_package():
    source, name = plotly_js()
    assert source.is_file()
    assert name.startswith("plotly-")
