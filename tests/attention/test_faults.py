from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11.attention import (
    Decoder,
    DecoderConfig,
    Fault,
    check_chunk_sizes,
    compare,
    prefill,
    rounding_tolerance,
    sample_prompt,
)

F = Fault


def test_names_are_the_command_lines():
    assert [fault.value for fault in Fault] == [
        "chunk-relative-positions",
        "cached-keys-hidden",
        "no-causality-in-chunk",
        "mask-shifted-by-one",
        "cache-not-appended",
    ]


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_says_what_it_is(fault):
    for text in (fault.description, fault.symptom):
        assert text[0].isupper()
        assert text.endswith(".")
    assert len({other.description for other in Fault}) == len(Fault)


@pytest.mark.parametrize("shape", ["tiny", "decoder"])
@pytest.mark.parametrize("chunk_tokens", [16, 100, 149])
@pytest.mark.parametrize("fault", Fault)
def test_every_fault_is_caught(request, fault, chunk_tokens, shape):
    """Caught on both paths, by far more than rounding: a hundred times its tolerance."""
    decoder = request.getfixturevalue(shape)
    (check,) = check_chunk_sizes(
        tokens=150, chunk_sizes=[chunk_tokens], decoder=decoder, fault=fault
    )
    assert check.fault is fault
    assert not check.tiled.identical
    assert not check.plain.identical
    assert not check.plain_within_rounding
    assert not check.passed
    assert check.plain.max_abs_diff > 100 * check.rounding_tolerance
    assert check.tiled.max_abs_diff > 100 * check.rounding_tolerance


# fault -> revealed by a chunk that is the whole prompt, revealed by one-token chunks
REVEALED = {
    F.CHUNK_RELATIVE_POSITIONS: (False, True),
    F.CACHED_KEYS_HIDDEN: (False, True),
    F.NO_CAUSALITY_IN_CHUNK: (True, False),
    F.MASK_SHIFTED_BY_ONE: (True, False),
    F.CACHE_NOT_APPENDED: (False, True),
}


@pytest.mark.parametrize("fault", Fault)
def test_what_the_two_ends_of_the_chunk_range_reveal(tiny, fault):
    whole, single = check_chunk_sizes(tokens=70, chunk_sizes=[70, 1], decoder=tiny, fault=fault)
    assert (fault.revealed_by_whole_prompt, fault.revealed_by_one_token_chunks) == REVEALED[fault]
    assert (not whole.passed, not single.passed) == REVEALED[fault]
    assert (not whole.tiled.identical, not single.tiled.identical) == REVEALED[fault]


@settings(max_examples=40)
@given(st.sampled_from(Fault), st.integers(1, 40), st.integers(1, 40))
def test_revealed_by_is_exact(tiny, fault, prompt_tokens, chunk_tokens):
    prompt = sample_prompt(prompt_tokens, decoder=tiny)
    correct = prefill(prompt, prompt_tokens, decoder=tiny)
    faulty = prefill(prompt, chunk_tokens, decoder=tiny, faults={fault})
    comparison = compare(correct, faulty)
    assert comparison.identical is not fault.revealed_by(faulty.chunk_lengths)


ALL = range(7)
# Seven tokens in chunks of three: 0 1 2 | 3 4 5 | 6. Per layer, the positions that come out wrong.
LATER, NOT_LAST_OF_CHUNK = range(3, 7), [0, 1, 3, 4]
WRONG_KEYS: dict[Fault, list[Iterable[int]]] = {
    F.CHUNK_RELATIVE_POSITIONS: [LATER, LATER, LATER],
    F.CACHED_KEYS_HIDDEN: [[], LATER, LATER],
    F.NO_CAUSALITY_IN_CHUNK: [[], NOT_LAST_OF_CHUNK, ALL],
    F.MASK_SHIFTED_BY_ONE: [[], NOT_LAST_OF_CHUNK, ALL],
    F.CACHE_NOT_APPENDED: [range(6), ALL, ALL],
}
WRONG_VALUES = WRONG_KEYS | {F.CHUNK_RELATIVE_POSITIONS: [[], LATER, LATER]}


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("fault", Fault)
def test_which_layers_and_positions_each_fault_breaks(decoder, fault, tiled):
    prompt = sample_prompt(7, decoder=decoder)
    correct = prefill(prompt, 7, decoder=decoder, tiled=tiled)
    comparison = compare(correct, prefill(prompt, 3, decoder=decoder, tiled=tiled, faults={fault}))
    tolerance = 0 if tiled else rounding_tolerance(correct, config=decoder.config)
    for wrong, apart in (
        (WRONG_KEYS[fault], comparison.key_abs_diff_by_position),
        (WRONG_VALUES[fault], comparison.value_abs_diff_by_position),
    ):
        assert [np.flatnonzero(row > tolerance).tolist() for row in apart] == [
            list(positions) for positions in wrong
        ]
    assert comparison.last_hidden_max_abs_diff > tolerance


@pytest.mark.parametrize("fault", [F.NO_CAUSALITY_IN_CHUNK, F.MASK_SHIFTED_BY_ONE])
def test_a_leak_crosses_key_blocks(decoder, fault):
    """Chunks 0..99 and 100..139: position 63 sees key 64, the first of the next block."""
    prompt = sample_prompt(140, decoder=decoder)
    correct = prefill(prompt, 140, decoder=decoder)
    apart = compare(correct, prefill(prompt, 100, decoder=decoder, faults={fault}))
    right = np.flatnonzero(apart.key_abs_diff_by_position[1] == 0)
    assert right.tolist() == [99, 139]


def test_a_cache_that_is_not_appended_holds_the_last_chunk_alone(decoder):
    prompt = sample_prompt(7, decoder=decoder)
    faulty = prefill(prompt, 3, decoder=decoder, faults={F.CACHE_NOT_APPENDED})
    assert not faulty.keys[:, :6].any()
    assert not faulty.values[:, :6].any()
    hidden = prefill(prompt, 3, decoder=decoder, faults={F.CACHED_KEYS_HIDDEN})
    assert np.array_equal(faulty.keys[:, 6], hidden.keys[:, 6])
    assert np.array_equal(faulty.last_hidden, hidden.last_hidden)


@pytest.mark.parametrize("fault", Fault)
def test_one_layer_cannot_show_a_fault_inside_the_chunk(fault):
    """Its keys and values come before any mask, and the last token of a chunk sees no future."""
    one_layer = Decoder(DecoderConfig(layers=1))
    (check,) = check_chunk_sizes(tokens=20, chunk_sizes=[6], decoder=one_layer, fault=fault)
    assert check.passed is fault.revealed_by_whole_prompt
