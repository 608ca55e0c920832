import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.attention import Fault, chunk_attention_mask
from s11.attention.mask import visible_keys

O, X = False, True  # hidden, visible


@pytest.mark.parametrize(
    ("chunk_len", "cached_len", "expected"),
    [
        (1, 0, [[X]]),
        (3, 0, [[X, O, O], [X, X, O], [X, X, X]]),
        (1, 4, [[X, X, X, X, X]]),
        (2, 3, [[X, X, X, X, O], [X, X, X, X, X]]),
        (4, 1, [[X, X, O, O, O], [X, X, X, O, O], [X, X, X, X, O], [X, X, X, X, X]]),
    ],
)
def test_mask_by_hand(chunk_len, cached_len, expected):
    mask = chunk_attention_mask(chunk_len, cached_len)
    assert mask.dtype == np.bool_
    assert mask.tolist() == expected


@given(st.integers(1, 40), st.integers(0, 40))
def test_query_i_sees_the_cache_and_i_plus_1_keys_of_its_chunk(chunk_len, cached_len):
    mask = chunk_attention_mask(chunk_len, cached_len)
    assert mask.shape == (chunk_len, cached_len + chunk_len)
    assert mask[:, :cached_len].all()
    assert mask.sum(axis=1).tolist() == [cached_len + i + 1 for i in range(chunk_len)]


@given(st.integers(1, 40), st.integers(1, 40))
def test_chunks_masks_stacked_are_the_whole_prompts_mask(prompt, chunk):
    whole = chunk_attention_mask(prompt, 0)
    for start in range(0, prompt, chunk):
        end = min(start + chunk, prompt)
        mask = chunk_attention_mask(end - start, start)
        assert np.array_equal(mask, whole[start:end, :end])
        assert not whole[start:end, end:].any()


@pytest.mark.parametrize(
    ("chunk_len", "cached_len", "message"),
    [
        (0, 0, r"chunk_len: got 0; allowed: an integer of at least 1"),
        (-2, 0, r"chunk_len: got -2"),
        (1.5, 0, r"chunk_len: got 1\.5"),
        (True, 0, r"chunk_len: got True"),
        ("3", 0, r"chunk_len: got '3'"),
        (1, -1, r"cached_len: got -1; allowed: an integer of at least 0"),
        (1, None, r"cached_len: got None"),
    ],
)
def test_mask_refuses(chunk_len, cached_len, message):
    with pytest.raises(ValueError, match=message):
        chunk_attention_mask(chunk_len, cached_len)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [  # a chunk of three at positions 2, 3, 4 behind a cache of two; key 5 is not computed yet
        (None, [[X, X, X, O, O, O], [X, X, X, X, O, O], [X, X, X, X, X, O]]),
        (
            Fault.CHUNK_RELATIVE_POSITIONS,
            [[X, X, X, O, O, O], [X, X, X, X, O, O], [X, X, X, X, X, O]],
        ),
        (Fault.CACHED_KEYS_HIDDEN, [[O, O, X, O, O, O], [O, O, X, X, O, O], [O, O, X, X, X, O]]),
        (Fault.CACHE_NOT_APPENDED, [[O, O, X, O, O, O], [O, O, X, X, O, O], [O, O, X, X, X, O]]),
        (Fault.NO_CAUSALITY_IN_CHUNK, [[X, X, X, X, X, O]] * 3),
        (Fault.MASK_SHIFTED_BY_ONE, [[X, X, X, X, O, O], [X, X, X, X, X, O], [X, X, X, X, X, O]]),
    ],
)
def test_what_each_fault_shows_and_hides(fault, expected):
    visible = visible_keys(
        query_positions=np.array([[2], [3], [4]]),
        key_positions=np.arange(6)[None, :],
        chunk_start=2,
        chunk_end=5,
        faults=frozenset() if fault is None else frozenset({fault}),
    )
    assert visible.tolist() == expected
