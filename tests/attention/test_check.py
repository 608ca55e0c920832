import math

import numpy as np
import pytest

from s11.attention import (
    MAX_CHECK_TOKENS,
    DecoderConfig,
    Fault,
    PrefillResult,
    check_chunk_sizes,
    prefill,
    rounding_tolerance,
    sample_prompt,
)


def test_every_chunk_size_passes(decoder):
    seen = []
    checks = check_chunk_sizes(
        tokens=130,
        chunk_sizes=[7, 65, 130, 200],
        decoder=decoder,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [check.chunk_tokens for check in checks] == [7, 65, 130, 200]
    assert [check.chunks for check in checks] == [19, 2, 1, 1]
    assert [check.divides_prompt for check in checks] == [False, True, True, False]
    for check in checks:
        assert check.passed
        assert check.tiled.identical
        assert check.plain_within_rounding
        assert check.prompt_tokens == sum(check.chunk_lengths) == 130
        assert check.fault is None
    assert checks[2].plain.identical  # the reference itself


def test_tokens_may_be_the_prompt_itself(tiny):
    prompt = sample_prompt(9, decoder=tiny, seed=4)
    (check,) = check_chunk_sizes(
        tokens=prompt, chunk_sizes=[4], decoder=tiny, fault=Fault.CACHED_KEYS_HIDDEN
    )
    correct = prefill(prompt, 9, decoder=tiny)
    faulty = prefill(prompt, 4, decoder=tiny, faults={Fault.CACHED_KEYS_HIDDEN})
    expected = np.abs(faulty.keys - correct.keys).max(axis=(2, 3))
    assert np.array_equal(check.tiled.key_abs_diff_by_position, expected)


def test_rounding_tolerance_by_hand():
    # Eight sums a layer, three layers, root of the longest (900 positions) 30, 2 ** -23, largest 4.
    keys = np.full((3, 900, 1, 2), 2, np.float32)
    reference = PrefillResult((900,), keys, -keys, np.array([1, -4], np.float32))
    tolerance = rounding_tolerance(reference, config=DecoderConfig())
    assert tolerance == pytest.approx(8 * 3 * 30 * 2**-23 * 4)


def test_rounding_tolerance_is_far_below_the_values(decoder):
    reference = prefill(sample_prompt(200, decoder=decoder), 200, decoder=decoder)
    tolerance = rounding_tolerance(reference, config=decoder.config)
    assert 0 < tolerance < 1e-3 * np.abs(reference.keys).max()
    assert math.isfinite(tolerance)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": 0}, "tokens: got 0; allowed: an integer in 1..8192"),
        ({"tokens": MAX_CHECK_TOKENS + 1}, "tokens: got 8193; allowed: an integer in 1..8192"),
        ({"tokens": np.zeros(8193, int)}, "tokens: got 8193; allowed: an integer in 1..8192"),
        ({"tokens": 1.5}, "tokens: got 1.5"),
        ({"tokens": np.array([99])}, "tokens: got token id 99; allowed: 0..60"),
        ({"chunk_sizes": []}, "chunk_sizes: got none; allowed: at least one"),
        ({"chunk_sizes": [4, 0]}, "chunk_sizes: got 0; allowed: an integer of at least 1"),
        ({"fault": "no-such-bug"}, "fault: got 'no-such-bug'; allowed: chunk-relative-positions"),
    ],
)
def test_check_refuses(tiny, change, message):
    arguments = {"tokens": 5, "chunk_sizes": [2], "decoder": tiny} | change
    with pytest.raises(ValueError, match=message):
        check_chunk_sizes(**arguments)
