import numpy as np

from s11.attention import TILE_TOKENS, KVCache


def filled(cache, tokens, value):
    """Append `tokens` rows whose keys are `value` in layer 0, `value` + 100 in layer 1."""
    start = cache.extend(tokens)
    for layer in (0, 1):
        rows = np.full((tokens, 1, 2), value + 100 * layer, np.float32)
        cache.write(layer, start, rows, -rows)
    return start


def new_cache():
    return KVCache(layers=2, kv_heads=1, head_dim=2)


def test_rows_are_appended_in_order_per_layer():
    cache = new_cache()
    assert [filled(cache, 2, 1), filled(cache, 3, 2), filled(cache, 1, 3)] == [0, 2, 5]
    assert cache.tokens == 6
    assert cache.keys.shape == cache.values.shape == (2, 6, 1, 2)
    assert cache.keys[0, :, 0, 0].tolist() == [1, 1, 2, 2, 2, 3]
    assert cache.keys[1, :, 0, 1].tolist() == [101, 101, 102, 102, 102, 103]
    assert cache.values[0, :, 0, 0].tolist() == [-1, -1, -2, -2, -2, -3]


def test_growth_keeps_what_is_held_and_leaves_zero_beyond():
    cache = new_cache()
    for value in range(1, 151):
        filled(cache, 1, value)
        blocks = -(-cache.tokens // TILE_TOKENS)
        for rows in (cache.key_blocks(0, blocks), cache.value_blocks(1, blocks)):
            assert rows.shape == (blocks, TILE_TOKENS, 1, 2)
            assert not rows.reshape(-1, 2)[cache.tokens :].any()
    assert cache.keys[0, :, 0, 0].tolist() == list(range(1, 151))
    assert cache.key_blocks(0, 3)[2, :22, 0, 0].tolist() == list(range(129, 151))


def test_growth_is_amortised():
    cache = new_cache()
    moves, held = 0, None
    for _ in range(1_024):
        cache.extend(1)
        moves += cache.keys.base is not held
        held = cache.keys.base
    assert moves == 5  # room for 64, 128, 256, 512, 1,024


def test_forget_zeroes_what_is_held_and_keeps_the_place():
    cache = new_cache()
    filled(cache, 3, 1)
    cache.forget()
    assert filled(cache, 2, 4) == 3
    assert cache.keys[0, :, 0, 0].tolist() == [0, 0, 0, 4, 4]
    assert cache.values[1, :, 0, 0].tolist() == [0, 0, 0, -104, -104]
