"""Decoders that the attention tests share; weights are read-only, so sharing is safe."""

import pytest

from s11.attention import Decoder, DecoderConfig


@pytest.fixture(scope="session")
def decoder() -> Decoder:
    """The default decoder: three layers."""
    return Decoder()


@pytest.fixture(scope="session")
def tiny() -> Decoder:
    """Small enough for the reference decoder's loops; three query heads per KV head."""
    return Decoder(
        DecoderConfig(
            vocab_size=61,
            hidden_size=20,
            layers=3,
            query_heads=6,
            kv_heads=2,
            head_dim=6,
            ffn_size=28,
            rope_theta=500.0,
            seed=7,
        )
    )
