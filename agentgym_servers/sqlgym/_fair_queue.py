"""A queue that takes from its sources in turn, and from each source one item at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A thread-safe queue in which no source delays another by more than one item per worker.

    An item of a source is given out only when its previous item is finished. Sources take turns: a source
    that has just had an item comes after all waiting ones.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._items: dict[Hashable, deque[T]] = {}  # of each source with a waiting or an unfinished item
        self._turns: deque[Hashable] = deque()  # the sources with waiting items and no unfinished one
        self._closed = False

    def put(self, source: Hashable, item: T) -> bool:
        """Add an item after all items of its source; return False if the queue is closed."""
        with self._changed:
            if self._closed:
                return False
            if source not in self._items:
                self._items[source] = deque()
                self._turns.append(source)
                self._changed.notify()
            self._items[source].append(item)
            return True

    def get(self) -> tuple[Hashable, T] | None:
        """Wait for an item; return it with its source, or None when the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._turns)
            if self._closed:
                return None
            source = self._turns.popleft()
            return source, self._items[source].popleft()

    def finish(self, source: Hashable) -> None:
        """Allow the next item of a source, after an item of it is finished."""
        with self._changed:
            if self._items[source]:
                self._turns.append(source)
                self._changed.notify()
            else:
                del self._items[source]

    def close(self) -> list[T]:
        """End all waits, and return the items that no one has taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            left = [item for items in self._items.values() for item in items]
            for items in self._items.values():
                items.clear()
            return left
