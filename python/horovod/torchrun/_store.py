"""The store of a world, as torchrun's agent uses it."""

import json
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Callable, TypeVar

from torch.distributed import DistError

_LOOK = timedelta(seconds=1)  # for how long a call waits before it looks whether the world has ended
_PAUSE = 0.1  # s, after a call that has failed

T = TypeVar("T")


class WorldStore:
    """A TCPStore in which nobody waits for nodes of a world that has ended. It has all of its methods.

    torchrun's agent asks the store for what other nodes write there: which ranks they have, and, at the end, that they have ended. It can't
    go on without an answer, and asks for the next rendezvous only afterwards. So once the world has ended it gets one: its own ranks alone,
    for workers that it stops at once.

    Args:
      store: the world's; its connection may break when the world ends.
      has_ended: returns whether the world has ended, or is about to.
      size: the number of its nodes.
    """

    def __init__(self, store: Any, has_ended: Callable[[], bool], size: int) -> None:
        self._store = store
        self._has_ended = has_ended
        self._size = size
        self._own = b""  # what this node has written last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def set(self, key: str, value: Any) -> None:
        self._own = value
        self._ask(lambda: self._store.set(key, value), None)

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        self._ask(lambda: self._store.multi_set(list(keys), list(values)), None)

    def add(self, key: str, amount: int) -> int:
        return self._ask(lambda: self._store.add(key, amount), 0)

    def get(self, key: str) -> bytes:
        def read() -> bytes:
            self._store.wait([key], _LOOK)
            return bytes(self._store.get(key))

        return self._ask(read, json.dumps([0, self._size, 0, self._size]).encode())

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        def read() -> list[bytes]:
            self._store.wait(list(keys), _LOOK)
            return list(self._store.multi_get(list(keys)))

        return self._ask(read, [self._own] * len(keys))

    def wait(self, keys: Sequence[str]) -> None:
        self._ask(lambda: self._store.wait(list(keys), _LOOK), None)

    def _ask(self, call: Callable[[], T], otherwise: T) -> T:
        deadline = time.monotonic() + self._store.timeout.total_seconds()
        while True:
            try:
                return call()
            except DistError:
                if self._has_ended():
                    return otherwise
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE)
