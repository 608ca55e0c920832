"""Links of hostile values, several in one visit: each parameter is judged by itself."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from s11.ui.frame import MOST_NOTES


def hostile_links(hostile: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Links that hold every hostile value of every parameter once, and no more of them than notes.

    hostile: by parameter, its values.
    """

    def rounds() -> Iterator[dict[str, str]]:
        for values in zip_longest(*hostile.values()):
            pairs = zip(hostile, values, strict=True)
            together = [(name, value) for name, value in pairs if value is not None]
            for first in range(0, len(together), MOST_NOTES):
                yield dict(together[first : first + MOST_NOTES])

    return list(rounds())


def noted(app: Any) -> set[str]:
    """The parameters that the page's note about its link names."""
    note = app.info[0].value.replace("\\", "")
    return set(re.findall(r"^- (\w+): ", note, flags=re.MULTILINE))
