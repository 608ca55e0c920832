"""What a scene of the guided tour is made of: one claim, one control, one live picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from s11.figures.theme import Spec

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The one thing to change in a scene.

    key: its name in the link.
    label: what it changes, with the unit.
    options: whole numbers on a slider, or texts to choose from.
    default: the option that is shown unasked.
    about: what it does, in a sentence.

    Raises:
        ValueError: a default that is no option.
    """

    key: str
    label: str
    options: tuple[Any, ...]
    default: Any
    about: str

    def __post_init__(self) -> None:
        if self.default not in self.options:
            raise ValueError(f"default: {self.default!r} is not one of {self.options!r:.80}")

    @property
    def slides(self) -> bool:
        """Whether its options are numbers in order."""
        return isinstance(self.default, int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way to the page that has all the controls, in the state that the scene shows.

    page: its address; "" is the simulator.
    """

    label: str
    page: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shown:
    """A scene at one setting of its control.

    spec, alt: the picture, and its numbers for those who cannot see it.
    sentences: two or three, with the picture's own numbers.
    columns: the numbers as a table.
    """

    spec: Spec
    alt: str
    sentences: tuple[str, ...]
    columns: Columns
    link: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One step of the tour.

    slug: its name in tests, keys and file names.
    headline: its claim.
    show: the scene at one of the control's options.
    """

    slug: str
    headline: str
    control: Control
    show: Callable[[Any], Shown]
