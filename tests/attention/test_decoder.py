from dataclasses import replace

import numpy as np
import pytest

from s11.attention import Decoder, DecoderConfig


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocab_size": 1}, "vocab_size: got 1; allowed: an integer of at least 2"),
        ({"hidden_size": 0}, "hidden_size: got 0; allowed: an integer of at least 1"),
        ({"layers": -1}, "layers: got -1"),
        ({"layers": 2.0}, "layers: got 2.0"),
        ({"query_heads": 3}, "query_heads: got 3; allowed: a multiple of kv_heads"),
        ({"kv_heads": 0}, "kv_heads: got 0"),
        ({"head_dim": 7}, "head_dim: got 7; allowed: an even integer"),
        ({"ffn_size": True}, "ffn_size: got True"),
        ({"rope_theta": 0.0}, "rope_theta: got 0.0; allowed: a number above 0"),
        ({"rope_theta": float("inf")}, "rope_theta: got inf"),
        ({"norm_eps": -1e-5}, "norm_eps: got -1e-05"),
        ({"norm_eps": "1"}, "norm_eps: got '1'"),
        ({"seed": -1}, "seed: got -1; allowed: an integer of at least 0"),
    ],
)
def test_config_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        replace(DecoderConfig(), **change)


def arrays(decoder):
    yield decoder.embedding
    for layer in decoder.layers:
        yield from (getattr(layer, name) for name in layer.__dataclass_fields__)
    yield decoder.final_norm
    yield decoder.unembedding


def test_weights_are_float32_and_read_only(decoder):
    for weights in arrays(decoder):
        assert weights.dtype == np.float32
        with pytest.raises(ValueError, match="read-only"):
            weights[...] = 0


def test_the_seed_decides_the_weights():
    config = DecoderConfig(layers=1)
    first, again = Decoder(config), Decoder(config)
    other = Decoder(replace(config, seed=1))
    assert all(map(np.array_equal, arrays(first), arrays(again)))
    assert not any(map(np.array_equal, arrays(first), arrays(other)))


def test_shapes_follow_the_config(tiny):
    layer = tiny.layers[0]
    shapes = {name: getattr(layer, name).shape for name in layer.__dataclass_fields__}
    assert shapes == {
        "attention_norm": (20,),
        "query": (20, 36),
        "key": (20, 12),
        "value": (20, 12),
        "output": (36, 20),
        "ffn_norm": (20,),
        "gate": (20, 28),
        "up": (20, 28),
        "down": (28, 20),
    }
    assert len(tiny.layers) == 3
    assert (tiny.embedding.shape, tiny.unembedding.shape) == ((61, 20), (20, 61))
    assert tiny.new_cache().keys.shape == (3, 0, 2, 6)


def test_products_keep_their_inputs_scale(decoder):
    # Variance 1 / rows: the columns of a 128-row matrix have a root sum of squares near 1.
    norms = np.sqrt((decoder.layers[0].query.astype(np.float64) ** 2).sum(axis=0))
    assert norms.mean() == pytest.approx(1, abs=0.05)
