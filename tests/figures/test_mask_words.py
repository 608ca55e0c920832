"""The mask page's sentences: every number in them counted by hand."""

import re

import pytest

from s11.attention import Decoder, DecoderConfig, Fault, check_chunk_sizes
from s11.figures.mask_info import mask_info
from s11.figures.mask_words import (
    LESSONS,
    NO_BUG_LESSON,
    hidden_from,
    hidden_from_sentence,
    mask_lesson,
    same_bits_lesson,
    verdict_sentence,
)

BETWEEN = {
    Fault.CHUNK_RELATIVE_POSITIONS,
    Fault.CACHED_KEYS_HIDDEN,
    Fault.CACHE_NOT_APPENDED,
}


@pytest.fixture(scope="module")
def decoder():
    return Decoder(DecoderConfig(vocab_size=32, hidden_size=16, head_dim=8, ffn_size=32))


def sentences(text):
    return re.findall(r"[^.]+\.(?=\s|$)", text)


@pytest.mark.parametrize("text", [*LESSONS.values(), NO_BUG_LESSON])
def test_every_lesson_is_two_sentences(text):
    assert len(sentences(text)) == 2


def test_every_fault_has_a_lesson():
    assert set(LESSONS) == set(Fault)


def test_mask_lesson_counts():
    # 8 x 24 cached + 8 x 9 / 2 own = 192 + 36 = 228.
    lesson = mask_lesson(mask_info(chunk_tokens=8, cached_tokens=24))
    assert "position 24 sees 25 keys and the one at position 31 sees 32" in lesson
    assert "36 of these 228 pairs and lose the other 192" in lesson
    assert len(sentences(lesson)) == 2


def test_mask_lesson_of_a_first_and_of_a_one_token_chunk():
    first = mask_lesson(mask_info(chunk_tokens=3, cached_tokens=0))
    assert "position 0 sees 1 key and the one at position 2 sees 3" in first
    assert "empty cache" in first
    alone = mask_lesson(mask_info(chunk_tokens=1, cached_tokens=4))
    assert alone.startswith("The query at position 4 sees 5 keys: ")
    assert "1 of these 5 pairs and lose the other 4" in alone


@pytest.mark.parametrize("fault", list(Fault))
def test_which_sizes_hide_a_fault(fault):
    # Between chunks: one chunk has no second. Inside a chunk: one token has no other.
    size = 10 if fault in BETWEEN else 1
    assert hidden_from(fault, prompt_tokens=10) == (size,)
    sentence = hidden_from_sentence(fault, prompt_tokens=10)
    whole = " (the whole prompt at once)" if fault in BETWEEN else ""
    assert sentence == (
        f"Of all chunk sizes from 1 to 10 tokens, only {size}{whole} cannot reveal it."
    )


@pytest.mark.parametrize("fault", list(Fault))
def test_verdict_is_the_checks(decoder, fault):
    caught, hidden = check_chunk_sizes(
        tokens=10, chunk_sizes=[4, 10 if fault in BETWEEN else 1], decoder=decoder, fault=fault
    )
    assert verdict_sentence(caught) == "The check catches it."
    assert verdict_sentence(hidden).startswith("The check passes: ")


def test_same_bits_lesson_counts_and_quotes(decoder):
    checks = check_chunk_sizes(tokens=10, chunk_sizes=[3, 4, 10], decoder=decoder)
    lesson = same_bits_lesson(checks)
    assert "all 3 chunk sizes leave the same K and V" in lesson
    assert "rounding" in lesson
    broken = check_chunk_sizes(
        tokens=10, chunk_sizes=[4], decoder=decoder, fault=Fault.CACHED_KEYS_HIDDEN
    )
    assert "0 of 1 chunk sizes leave the same bits" in same_bits_lesson(broken)
    assert "more than rounding" in same_bits_lesson(broken)
