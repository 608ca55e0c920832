"""What kind of result it is, and how that is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What kind of result it is."""

    NO_REQUEST = "no request"
    REFUSED = "refused"
    NEVER_SCHEDULED = "never scheduled"
    NEVER_FINISHED = "never finished"
    STOPPED = "stopped at the step limit"
    NOBODY_STREAMS = "nobody streams"
    SMOOTH = "no stall"
    STALL = "stall"
    TARGET_OUT_OF_REACH = "target out of reach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A verdict, a headline of a few words, and a sentence or two with the figures."""

    verdict: Verdict
    headline: str
    sentence: str
