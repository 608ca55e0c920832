"""An independent decoder, written the long way in float64: no mask, no cache, no batch.

It takes nothing from `s11.attention` but the weights: every position is computed on its own from
the positions before it, RoPE is a product of complex numbers, and every head has its own loop.
"""

import cmath
import math

import numpy as np

from s11.attention import Decoder, PrefillResult


def rms(row: np.ndarray, gain: np.ndarray, eps: float) -> np.ndarray:
    mean_square = math.fsum(float(x) ** 2 for x in row) / len(row)
    return row / math.sqrt(mean_square + eps) * gain


def rotate(head: np.ndarray, position: int, theta: float) -> np.ndarray:
    rotated = []
    for i in range(len(head) // 2):
        angle = position * theta ** (-2 * i / len(head))
        turned = complex(head[2 * i], head[2 * i + 1]) * cmath.exp(1j * angle)
        rotated += [turned.real, turned.imag]
    return np.array(rotated)


def attend(query: np.ndarray, keys: list[np.ndarray], values: list[np.ndarray]) -> np.ndarray:
    """One query head over the keys and values that it may see."""
    scores = [float(query @ key) / math.sqrt(len(query)) for key in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    weighted = [weight * value for weight, value in zip(weights, values, strict=True)]
    return np.sum(weighted, axis=0) / math.fsum(weights)


def reference_states(tokens, decoder: Decoder) -> PrefillResult:
    """Keys, values and last hidden state of a prompt, in float64."""
    c = decoder.config
    group = c.query_heads // c.kv_heads
    hidden = [decoder.embedding[token].astype(np.float64) for token in tokens]
    all_keys, all_values = [], []
    for layer in decoder.layers:
        w = {name: np.asarray(array, np.float64) for name, array in vars(layer).items()}
        keys, values, after = [], [], []
        for position, state in enumerate(hidden):
            normed = rms(state, w["attention_norm"], c.norm_eps)
            key_heads = (normed @ w["key"]).reshape(c.kv_heads, c.head_dim)
            keys.append([rotate(head, position, c.rope_theta) for head in key_heads])
            values.append(list((normed @ w["value"]).reshape(c.kv_heads, c.head_dim)))
            heads = []
            for index, head in enumerate((normed @ w["query"]).reshape(-1, c.head_dim)):
                kv_head = index // group
                heads.append(
                    attend(
                        rotate(head, position, c.rope_theta),
                        [seen[kv_head] for seen in keys],
                        [seen[kv_head] for seen in values],
                    )
                )
            state = state + np.concatenate(heads) @ w["output"]
            normed = rms(state, w["ffn_norm"], c.norm_eps)
            gate, up = normed @ w["gate"], normed @ w["up"]
            silu = np.array([z / (1 + math.exp(-z)) for z in gate])
            after.append(state + (silu * up) @ w["down"])
        hidden = after
        all_keys.append(keys)
        all_values.append(values)
    last = rms(hidden[-1], decoder.final_norm.astype(np.float64), c.norm_eps)
    return PrefillResult((len(tokens),), np.array(all_keys), np.array(all_values), last)


def reference_tokens(prompt, output_tokens: int, decoder: Decoder) -> list[int]:
    """Greedy tokens, the whole sequence computed afresh for each."""
    known = [int(token) for token in prompt]
    for _ in range(output_tokens):
        logits = reference_states(known, decoder).last_hidden @ decoder.unembedding.astype(
            np.float64
        )
        known.append(int(np.argmax(logits)))
    return known[len(prompt) :]
