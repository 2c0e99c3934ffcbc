"""Operations in flight that nobody waits for any more."""

import collections
from typing import Callable, Generic, TypeVar

T = TypeVar("T")


class DroppedOperations(Generic[T]):
    """Keeps operations that a script has dropped until they are done, since the runtime uses their memory. Any thread may call it at
    any time, as Python frees objects.

    Args:
      release_if_done: releases an operation if it is done, and returns whether it was.
    """

    def __init__(self, release_if_done: Callable[[T], bool]) -> None:
        self._release_if_done = release_if_done
        self._operations: collections.deque[T] = collections.deque()

    def __bool__(self) -> bool:
        return bool(self._operations)

    def add(self, operation: T) -> None:
        """Keeps it."""
        self._operations.append(operation)

    def release(self) -> None:
        """Releases those that are done."""
        for _ in range(len(self._operations)):
            try:
                operation = self._operations.popleft()
            except IndexError:  # another thread is at it
                return
            if not self._release_if_done(operation):
                self._operations.append(operation)
