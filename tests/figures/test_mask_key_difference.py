"""|ΔK| by position, by value: differences made up here, so that every finding is known."""

import numpy as np
import pytest

from s11.attention import Decoder, DecoderConfig, Fault, check_chunk_sizes
from s11.figures.key_difference import key_difference_figure
from s11.figures.key_difference_info import (
    KeyDifferenceInfo,
    Path,
    ZeroRun,
    key_difference_alt,
    key_difference_columns,
    key_difference_info,
    number,
)


def info(rows, *, lengths=(4, 4, 2), fault=None, path=Path.TILES, tolerance=0.0):
    return KeyDifferenceInfo(
        chunk_tokens=lengths[0],
        chunk_lengths=lengths,
        fault=fault,
        path=path,
        abs_diff=np.array(rows, np.float32),
        tolerance=tolerance,
    )


ZEROS = [0.0] * 10
LATER = [0, 0, 0, 0, 1, 2, 3, 2.5, 1, 1]  # right in the first chunk of four
INSIDE = [1, 1, 1, 0, 1, 1, 1, 0, 1, 0]  # right at the last token of each chunk
ALL = [0.5] * 10


@pytest.mark.parametrize(
    ("rows", "title", "finding"),
    [
        (
            [LATER, LATER],
            "6 of 10 keys wrong, by up to 3.0",
            "In every layer, K is right at positions 0–3 and wrong at positions 4–9, by up to 3.0.",
        ),
        (
            [ZEROS, LATER, LATER],
            "6 of 10 keys wrong, by up to 3.0",
            "In the first layer, K is right at every position. In the second and third layers, "
            "K is right at positions 0–3 and wrong at positions 4–9, by up to 3.0.",
        ),
        (
            [ZEROS, INSIDE, ALL],
            "10 of 10 keys wrong, by up to 1.0",
            "In the first layer, K is right at every position. In the second layer, K is wrong "
            "at 7 of 10 positions (right at 3, 7, 9), by up to 1.0. In the third layer, K is "
            "wrong at every position, by up to 0.50.",
        ),
    ],
)
def test_finding_says_where_k_is_wrong(rows, title, finding):
    result = info(rows, fault=Fault.CACHED_KEYS_HIDDEN)
    assert result.title == title
    assert result.finding == finding


def test_nothing_differs():
    assert info([ZEROS]).title == "K is the same, bit for bit"
    assert info([ZEROS]).finding == "K of all 10 positions has the same bits in every layer."
    hiding = info([ZEROS], lengths=(10,), fault=Fault.CACHED_KEYS_HIDDEN)
    assert hiding.title == "K is right: this chunk size hides the bug"


def test_rounding_is_not_called_wrong_on_the_plain_path():
    rounding = info([[2e-6] * 10], path=Path.PLAIN, tolerance=1e-4)
    assert not rounding.wrong.any()
    assert rounding.title == "Rounding only: |ΔK| ≤ 2.0·10⁻⁶"
    assert rounding.finding == (
        "K differs by at most 2.0·10⁻⁶, below the 1.0·10⁻⁴ that rounding explains."
    )
    assert info([[2e-6] * 10]).wrong.all()  # aligned tiles allow none


def test_caption_has_prompt_chunks_bug_and_path():
    assert info([ZEROS]).caption == [
        "prompt 10 tokens, 3 chunks of 4 tokens, the last of 2",
        "bug: none; aligned tiles, float32",
    ]
    assert info([ZEROS], lengths=(10,)).caption[0] == "prompt 10 tokens, one chunk of 10 tokens"
    assert info([ZEROS], lengths=(5, 5)).caption[0] == "prompt 10 tokens, 2 chunks of 5 tokens"


def test_runs_of_zeros():
    assert info([LATER, INSIDE]).zero_runs == (
        ZeroRun(0, 0, 4),
        ZeroRun(1, 3, 4),
        ZeroRun(1, 7, 8),
        ZeroRun(1, 9, 10),
    )


def test_numbers_have_two_digits():
    values = [0, 8.2154, 0.2165, 0.0046, 2.14e-6, 12.0]
    assert [number(value) for value in values] == [
        "0", "8.2", "0.22", "4.6·10⁻³", "2.1·10⁻⁶", "12.0",
    ]  # fmt: skip


def test_figure_colours_what_differs_and_hatches_what_does_not():
    zeros, heat = key_difference_figure(info([LATER]))["data"]
    assert zeros["marker"]["pattern"]["shape"] == "/"
    assert (zeros["base"].tolist(), zeros["x"].tolist()) == ([-0.5], [4])
    assert np.isnan(heat["z"][0, :4]).all()
    np.testing.assert_allclose(heat["z"][0, 4:], np.log10([1, 2, 3, 2.5, 1, 1]), rtol=1e-6)
    assert heat["z"].dtype == np.float32
    assert heat["colorbar"]["ticktext"] == ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "1", "10"]
    assert heat["colorbar"]["tickvals"] == [-8, -6, -4, -2, 0, 1]


@pytest.mark.parametrize(
    ("rows", "hatched", "coloured"),
    [(LATER, True, True), (ZEROS, True, False), (ALL, False, True)],
)
def test_key_names_only_what_is_drawn(rows, hatched, coloured):
    key = key_difference_figure(info([rows]))["layout"]["annotations"][-1]["text"]
    assert ("hatched" in key, "largest |ΔK|" in key) == (hatched, coloured)


def test_figure_with_no_zero_has_no_hatching():
    (heat,) = key_difference_figure(info([ALL]))["data"]
    assert heat["type"] == "heatmap"


def test_boundaries_and_labels_of_chunks():
    layout = key_difference_figure(info([LATER]))["layout"]
    assert {shape["x0"] for shape in layout["shapes"]} == {3.5, 7.5}
    labels = [label["text"] for label in layout["annotations"]]
    assert labels[:3] == ["chunk 1", "chunk 2", "chunk 3"]
    many = key_difference_figure(info([[1.0] * 100], lengths=(1,) * 100))["layout"]
    assert many["shapes"] == []
    assert many["annotations"][0]["text"] == "100 chunks: boundaries too close to draw"
    some = key_difference_figure(info([[1.0] * 100], lengths=(10,) * 10))["layout"]
    assert some["annotations"][0]["text"] == "10 chunks"
    # 1 of 100 positions is 3 px on a phone: no room for its label.
    narrow = key_difference_figure(info([[1.0] * 100], lengths=(99, 1)))["layout"]
    assert [label["text"] for label in narrow["annotations"]][:1] == ["chunk 1"]
    assert "chunk 2" not in [label["text"] for label in narrow["annotations"]]


def test_data_has_layer_position_and_chunk():
    columns = key_difference_columns(info([[0, 0, 2], [1, 1, 1]], lengths=(2, 1)))
    assert columns == {
        "layer": [1, 1, 1, 2, 2, 2],
        "position": [0, 1, 2, 0, 1, 2],
        "chunk": [1, 1, 2, 1, 1, 2],
        "largest_abs_key_difference": [0, 0, 2, 1, 1, 1],
    }


def test_alt_has_the_numbers():
    alt = key_difference_alt(info([LATER], fault=Fault.CACHED_KEYS_HIDDEN))
    assert "6 of 10 keys wrong, by up to 3.0" in alt
    assert "right at positions 0–3" in alt
    assert "cached-keys-hidden" in alt


@pytest.mark.parametrize("path", list(Path))
def test_a_real_check_shows_its_path(path):
    """The fault's own account: K is right in the first chunk, wrong after it in every layer."""
    decoder = Decoder(DecoderConfig(vocab_size=32, hidden_size=16, head_dim=8, ffn_size=32))
    (check,) = check_chunk_sizes(
        tokens=12, chunk_sizes=[5], decoder=decoder, fault=Fault.CHUNK_RELATIVE_POSITIONS
    )
    result = key_difference_info(check, path=path)
    assert not result.wrong[:, :5].any()
    assert result.wrong[:, 5:].all()
    assert (result.chunk_lengths, result.fault) == ((5, 5, 2), Fault.CHUNK_RELATIVE_POSITIONS)
    assert result.tolerance == (0 if path is Path.TILES else check.rounding_tolerance)
