"""An iterator whose items are produced ahead on a thread."""

import collections
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

_Item = TypeVar("_Item")
_END = object()


class ReadAhead(Generic[_Item]):
    """An iterator that produces items ahead on a thread. An exception, also SystemExit, is raised after the items before it. Only
    one thread may iterate; any thread may call `close`.

    Args:
      items: the iterable, which the thread iterates over.
      length: how many items may wait. One more may be in production.
    """

    def __init__(self, items: Iterable[_Item], length: int) -> None:
        self._queue = _Queue(length)
        self._thread = threading.Thread(target=self._read, args=[items], name="horovod read ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[_Item]:
        return self

    def __next__(self) -> _Item:
        try:
            item = self._queue.get()
        except _Closed:
            raise StopIteration from None
        if item is _END:
            self.close()
            raise StopIteration
        if isinstance(item, _Failure):
            self.close()
            raise item.error
        return item  # type: ignore[no-any-return]

    @property
    def has_ended(self) -> bool:
        """Whether there are no more items."""
        return self._queue.is_closed

    def close(self) -> None:
        """Drops the waiting items and waits for the thread, which ends after its current item. Then there are no more items."""
        self._queue.close()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _read(self, items: Iterable[_Item]) -> None:
        try:
            self._queue.put(self._put_all(items))
        except _Closed:
            return

    def _put_all(self, items: Iterable[_Item]) -> object:
        """Puts the items into the queue. Returns what ends them, whatever that is: without it `__next__` would hang."""
        try:
            for item in items:
                self._queue.put(item)
        except _Closed:
            raise
        except BaseException as error:
            return _Failure(error)
        return _END


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Closed(Exception):
    pass


class _Queue:
    """A bounded queue between two threads. After `close`, its methods raise _Closed, including calls that wait."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._items: collections.deque[object] = collections.deque()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, item: Any) -> None:
        with self._changed:
            self._wait_for(lambda: len(self._items) < self._length)
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> Any:
        with self._changed:
            self._wait_for(lambda: bool(self._items))
            self._changed.notify_all()
            return self._items.popleft()

    def _wait_for(self, condition: Any) -> None:
        self._changed.wait_for(lambda: self._closed or condition())
        if self._closed:
            raise _Closed

    @property
    def is_closed(self) -> bool:
        with self._changed:
            return self._closed

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
