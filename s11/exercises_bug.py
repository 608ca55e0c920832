"""Exercise: a bug in a chunked prefill, to be found from where its keys are wrong."""

from __future__ import annotations

from dataclasses import dataclass

from s11.attention import ChunkSizeCheck, Fault
from s11.exercises import Choice, Exercise, Line, Quantity, Slip
from s11.quiz import Answer, PageLink
from s11.words import count

PROMPT_TOKENS = 256
CASES = {
    "A": Fault.CACHED_KEYS_HIDDEN,
    "B": Fault.CHUNK_RELATIVE_POSITIONS,
    "C": Fault.MASK_SHIFTED_BY_ONE,
    "D": Fault.CACHE_NOT_APPENDED,
}
NAMES = {
    Fault.CHUNK_RELATIVE_POSITIONS: "Positions begin at 0 again in every chunk.",
    Fault.CACHED_KEYS_HIDDEN: "The mask hides the cached keys of earlier chunks.",
    Fault.MASK_SHIFTED_BY_ONE: "The mask shows a query the token after it.",
    Fault.CACHE_NOT_APPENDED: "Each chunk replaces the cache instead of being appended.",
}
SIGNS = {
    Fault.CHUNK_RELATIVE_POSITIONS: (
        "Then K would be wrong in the first layer already, where no mask has acted yet, and right "
        "in the first chunk alone."
    ),
    Fault.CACHED_KEYS_HIDDEN: (
        "Then the first layer would be right everywhere, and the others right in the first chunk, "
        "which has no cache to miss."
    ),
    Fault.MASK_SHIFTED_BY_ONE: (
        "Then the first chunk would suffer too, and in the second layer only the last token of "
        "each chunk would be right: nothing after it is there to be seen."
    ),
    Fault.CACHE_NOT_APPENDED: (
        "Then in the first layer only the last chunk would be right, since the keys of all others "
        "are gone."
    ),
}


@dataclass(frozen=True, slots=True)
class BugNumbers:
    """What the exercise is set with: which case, and the chunk size in tokens."""

    case: str
    chunk_tokens: int

    @property
    def fault(self) -> Fault:
        """The bug that is switched on."""
        return CASES[self.case]


@dataclass(frozen=True, slots=True, kw_only=True)
class BugSolution:
    """What the decoder says: positions with a wrong key, in the first layer and in the second."""

    numbers: BugNumbers
    chunk_lengths: tuple[int, ...]
    first_wrong: int
    second_wrong: int


def solve_bug(numbers: BugNumbers, check: ChunkSizeCheck) -> BugSolution:
    """Count the wrong positions in a check of the case's bug at its chunk size."""
    wrong = check.tiled.key_abs_diff_by_position > 0
    return BugSolution(
        numbers=numbers,
        chunk_lengths=check.chunk_lengths,
        first_wrong=int(wrong[0].sum()),
        second_wrong=int(wrong[1].sum()),
    )


def bug_exercise(solution: BugSolution) -> Exercise:
    """Return the exercise with its numbers, and how they are worked out by hand."""
    lengths, chunk_tokens = solution.chunk_lengths, solution.numbers.chunk_tokens
    cut = f"{count(len(lengths), 'chunk')} of {chunk_tokens}"
    if lengths[-1] != lengths[0]:
        cut += f", the last of {lengths[-1]}"
    return Exercise(
        name="bug",
        title="Find the bug in the picture of |ΔK|",
        task=(
            f"An engine prefills {PROMPT_TOKENS} tokens in {cut} tokens, and one bug is switched "
            "on. The picture compares its keys with those of the whole prompt, position by "
            "position, layer by layer. Which bug is it, and exactly how many positions have a "
            "wrong key in the first layer and in the second? The picture shows the kind, the "
            "chunk sizes give the number."
        ),
        look_for=(
            "switch the bugs on one after the other at this chunk size. Ask of each: is the first "
            "layer touched, before any mask has acted? Is the first chunk spared? Is the last?"
        ),
        start=PageLink(
            "Open this chunk size on the mask page, without a bug",
            "mask",
            (("bug_chunk", str(chunk_tokens)), ("bug", "none")),
        ),
        quantities=_quantities(solution),
        choice=_choice(solution.numbers.fault),
        worked=_worked(solution),
        moral=(
            "K of the first layer depends on a token and its position alone; from the second "
            "layer on it depends on what the token has seen. So the first layer tells a wrong "
            "position or a lost cache from a wrong mask, and the first chunk tells a forgotten "
            "past from a leaking future."
        ),
    )


def _quantities(solution: BugSolution) -> tuple[Quantity, ...]:
    lengths = solution.chunk_lengths
    others = PROMPT_TOKENS - lengths[0]
    return (
        Quantity(
            name="first",
            label="Wrong keys in the first layer",
            unit="positions",
            answer=solution.first_wrong,
            slips=(
                Slip(lengths[0], "those are the positions of one chunk: the ones that are right?"),
                Slip(others, "that is all but the first chunk; look at which chunk is spared."),
            ),
        ),
        Quantity(
            name="second",
            label="Wrong keys in the second layer",
            unit="positions",
            answer=solution.second_wrong,
            slips=(
                Slip(lengths[0], "those are the positions of one chunk: the ones that are right?"),
                Slip(len(lengths), "that is one for each chunk: the ones that are right?"),
                Slip(
                    PROMPT_TOKENS - 1,
                    "nearly: the last token of every chunk is spared, not of the prompt alone.",
                ),
            ),
        ),
    )


def _choice(fault: Fault) -> Choice:
    return Choice(
        label="Which bug is it?",
        answers=tuple(
            [
                Answer(
                    NAMES[each],
                    each.description if each is fault else SIGNS[each],
                    right=each is fault,
                )
                for each in NAMES
            ]
        ),
    )


def _worked(solution: BugSolution) -> tuple[Line, Line]:
    lengths, fault = solution.chunk_lengths, solution.numbers.fault
    n, first, last, chunks = PROMPT_TOKENS, lengths[0], lengths[-1], len(lengths)
    no_mask = (
        "First layer: K is made of the token and its position, before any attention: all right."
    )
    later = f"{n} − {first} = {n - first} positions"
    says = {
        Fault.CHUNK_RELATIVE_POSITIONS: (
            Line("First layer: the first chunk counts from 0 rightly, all others wrongly.", later),
            Line("Second layer: the same positions are turned wrongly again.", later),
        ),
        Fault.CACHED_KEYS_HIDDEN: (
            Line(no_mask, "0 positions"),
            Line("Second layer: all but the first chunk have missed what was in the cache.", later),
        ),
        Fault.MASK_SHIFTED_BY_ONE: (
            Line(no_mask, "0 positions"),
            Line(
                "Second layer: each token has seen the next one, but for the last of each chunk, "
                "after which none is there.",
                f"{n} − {chunks} = {n - chunks} positions",
            ),
        ),
        Fault.CACHE_NOT_APPENDED: (
            Line(
                "First layer: only the last chunk is left in the cache, and its own keys are "
                "right.",
                f"{n} − {last} = {n - last} positions",
            ),
            Line(
                "Second layer: the last chunk has seen nothing before itself, so it is wrong too.",
                f"{n - last} + {last} = {n} positions",
            ),
        ),
    }
    return says[fault]
