"""Results that sessions share, bounded by their size, each made once however many ask."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """The values used last, as many as their sizes allow; at least one.

    size_of: what a value counts for.
    most: what all of them together may count for.
    """

    def __init__(self, *, size_of: Callable[[Value], int], most: int) -> None:
        self._size_of, self._most = size_of, most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def found(self, key: Hashable) -> Value | None:
        """Return the value, or None where it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        return None

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value; who asks for one that is just being made waits for it."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        try:
            with making:
                kept = self.found(key)
                if kept is not None:
                    return kept
                value = make()
                self.put(key, value)
                return value
        finally:
            with self._lock:
                if not making.locked():
                    self._making.pop(key, None)

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value, and let go of those that were not used for longest."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            total = sum(map(self._size_of, self._values.values()))
            while total > self._most and len(self._values) > 1:
                _, gone = self._values.popitem(last=False)
                total -= self._size_of(gone)
