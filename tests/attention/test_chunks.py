import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s11.attention import Decoder, DecoderConfig, Fault, compare, prefill, sample_prompt

from .reference import reference_states


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("chunk_tokens", [1, 10, 33, 70])
def test_both_paths_match_an_independent_decoder(tiny, tiled, chunk_tokens):
    prompt = sample_prompt(70, decoder=tiny, seed=3)
    expected = reference_states(prompt, tiny)
    got = prefill(prompt, chunk_tokens, decoder=tiny, tiled=tiled)
    for name in ("keys", "values", "last_hidden"):
        array = getattr(got, name)
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, getattr(expected, name), rtol=0, atol=2e-5)


def test_the_default_decoder_matches_an_independent_decoder(decoder):
    prompt = sample_prompt(12, decoder=decoder, seed=5)
    expected, got = reference_states(prompt, decoder), prefill(prompt, 5, decoder=decoder)
    np.testing.assert_allclose(got.keys, expected.keys, rtol=0, atol=2e-5)
    np.testing.assert_allclose(got.last_hidden, expected.last_hidden, rtol=0, atol=2e-5)


@settings(max_examples=30)
@given(prompt_tokens=st.integers(1, 200), chunk_tokens=st.integers(1, 200), seed=st.integers(0, 99))
@example(prompt_tokens=129, chunk_tokens=128, seed=0)
@example(prompt_tokens=128, chunk_tokens=64, seed=0)
@example(prompt_tokens=65, chunk_tokens=1, seed=0)
def test_every_chunk_size_gives_the_same_bits(tiny, prompt_tokens, chunk_tokens, seed):
    prompt = sample_prompt(prompt_tokens, decoder=tiny, seed=seed)
    whole = prefill(prompt, prompt_tokens, decoder=tiny)
    chunked = prefill(prompt, chunk_tokens, decoder=tiny)
    comparison = compare(whole, chunked)
    assert comparison.identical
    assert comparison.max_ulp == 0


@pytest.mark.parametrize(
    "config",
    [
        DecoderConfig(query_heads=4, kv_heads=4),
        DecoderConfig(query_heads=4, kv_heads=1),
        DecoderConfig(query_heads=1, kv_heads=1, head_dim=128),
        DecoderConfig(hidden_size=1, query_heads=1, kv_heads=1, head_dim=2, ffn_size=1, layers=2),
        DecoderConfig(hidden_size=37, query_heads=9, kv_heads=3, head_dim=10, ffn_size=51),
        DecoderConfig(hidden_size=512, ffn_size=1024, layers=1),
    ],
)
def test_every_decoder_shape_gives_the_same_bits(config):
    decoder = Decoder(config)
    prompt = sample_prompt(150, decoder=decoder)
    whole = prefill(prompt, 150, decoder=decoder)
    for chunk_tokens in (7, 64, 149):
        assert compare(whole, prefill(prompt, chunk_tokens, decoder=decoder)).identical


def test_a_longer_prompt_shares_its_beginning(decoder):
    prompt = sample_prompt(140, decoder=decoder)
    long, short = prefill(prompt, 50, decoder=decoder), prefill(prompt[:77], 77, decoder=decoder)
    assert np.array_equal(long.keys[:, :77], short.keys)
    assert np.array_equal(long.values[:, :77], short.values)
    assert not np.array_equal(long.last_hidden, short.last_hidden)


@pytest.mark.parametrize(
    ("chunk_tokens", "expected"),
    [(1, (1,) * 10), (3, (3, 3, 3, 1)), (5, (5, 5)), (9, (9, 1)), (10, (10,)), (11, (10,))],
)
def test_the_last_chunk_is_what_is_left(tiny, chunk_tokens, expected):
    prompt = sample_prompt(10, decoder=tiny)
    result = prefill(prompt, chunk_tokens, decoder=tiny)
    assert result.chunk_lengths == expected
    assert result.keys.shape == result.values.shape == (3, 10, 2, 6)
    assert result.last_hidden.shape == (20,)


def test_the_prompt_decides_the_states(tiny):
    prompt = sample_prompt(20, decoder=tiny)
    changed = prompt.copy()
    changed[8] = (changed[8] + 1) % tiny.config.vocab_size
    first, second = prefill(prompt, 20, decoder=tiny), prefill(changed, 20, decoder=tiny)
    apart = compare(first, second).key_abs_diff_by_position > 0
    assert apart.tolist() == [
        [position == 8 for position in range(20)],  # layer 0 keys know their own token alone
        [position >= 8 for position in range(20)],
        [position >= 8 for position in range(20)],
    ]


@pytest.mark.parametrize(
    ("tokens", "chunk_tokens", "message"),
    [
        ([], 1, r"tokens: got float64 of shape \(0,\); allowed: a one-dimensional array"),
        ([[1, 2]], 1, r"tokens: got int64 of shape \(1, 2\)"),
        ([1.0, 2.0], 1, r"tokens: got float64 of shape \(2,\)"),
        ([0, 61], 1, r"tokens: got token id 61; allowed: 0\.\.60"),
        ([0, -1], 1, r"tokens: got token id -1; allowed: 0\.\.60"),
        ([1, 2], 0, r"chunk_tokens: got 0; allowed: an integer of at least 1"),
        ([1, 2], 1.5, r"chunk_tokens: got 1\.5"),
    ],
)
def test_prefill_refuses(tiny, tokens, chunk_tokens, message):
    with pytest.raises(ValueError, match=message):
        prefill(tokens, chunk_tokens, decoder=tiny)


@pytest.mark.parametrize("faults", [{"no-such-bug"}, "no-such-bug", [Fault.CACHE_NOT_APPENDED, 1]])
def test_prefill_refuses_unknown_faults(tiny, faults):
    with pytest.raises(ValueError, match=r"fault: got .*; allowed: chunk-relative-positions, "):
        prefill([1, 2], 1, decoder=tiny, faults=faults)


def test_sample_prompt(tiny):
    prompt = sample_prompt(1_000, decoder=tiny)
    assert np.array_equal(prompt, sample_prompt(1_000, decoder=tiny))
    assert not np.array_equal(prompt, sample_prompt(1_000, decoder=tiny, seed=1))
    assert set(prompt.tolist()) == set(range(61))
    with pytest.raises(ValueError, match="tokens: got 0"):
        sample_prompt(0, decoder=tiny)
    with pytest.raises(ValueError, match="seed: got -1"):
        sample_prompt(1, decoder=tiny, seed=-1)
