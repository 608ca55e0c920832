"""What became of one experiment of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from s11.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures of one experiment, or the sentence with which it was refused.

    lost: its workers died, so that it may yet have figures.
    """

    metrics: Metrics | None
    refused: str | None
    lost: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads back to an equal outcome."""
        return {
            "metrics": None if self.metrics is None else self.metrics.to_dict(),
            "refused": self.refused,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Outcome:
        """Return the outcome that `to_dict` described."""
        metrics = data["metrics"]
        return cls(metrics=None if metrics is None else Metrics(**metrics), refused=data["refused"])

    def figures(self) -> dict[str, Any]:
        """Return every figure by name, None where the experiment was refused."""
        if self.metrics is None:
            return dict.fromkeys(figure_kinds())
        return self.metrics.to_dict()


class WorkersGoneError(RuntimeError):
    """Nobody is left to run a sweep; what had come is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """An experiment that had a worker die on it each time; why names the last death."""

    deaths: int
    why: str

    def sentence(self) -> str:
        """Return what to say in its row."""
        return f"worker: {self.deaths} died at this point ({self.why})"


def in_order(
    as_they_come: Callable[..., Iterator[tuple[int, Any]]],
    function: Callable[..., Any],
    *iterables: Iterable[Any],
) -> Iterator[Any]:
    """Yield results in their items' order, as `map` does, from workers that answer in any.

    Raises:
        WorkersGoneError: an item on which a worker died each time.
    """
    early: dict[int, Any] = {}
    wanted = 0
    for number, result in as_they_come(_Starred(function), list(zip(*iterables, strict=False))):
        early[number] = result
        while wanted in early:
            result = early.pop(wanted)
            wanted += 1
            if isinstance(result, Lost):
                raise WorkersGoneError(result.sentence())
            yield result


@dataclass(frozen=True, slots=True)
class _Starred:
    """A function of several arguments as one of a tuple."""

    function: Callable[..., Any]

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        return self.function(*arguments)


def figure_kinds() -> dict[str, type]:
    """Return what each of Metrics' fields holds, None aside: int, float or str."""
    hints = get_type_hints(Metrics)
    kinds: dict[str, type] = {}
    for field in fields(Metrics):
        hint = hints[field.name]
        options = [kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None)]
        kinds[field.name] = options[0]
    return kinds
