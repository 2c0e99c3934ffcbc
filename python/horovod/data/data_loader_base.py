"""A base class of loaders of batches, and a mixin that reads ahead on a thread."""

import collections
import threading
from collections.abc import Iterator
from typing import Any, Optional


class BaseDataLoader:
    """Gives the batches of an epoch each time it is iterated over. A subclass has `__len__`, the number of batches of an
    epoch, and `_iterate`, which yields them.

    >>> class Squares(BaseDataLoader):
    ...     def __len__(self):
    ...         return 3
    ...     def _iterate(self):
    ...         yield from (n * n for n in range(3))
    >>> list(Squares())
    [0, 1, 4]
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__: the number of batches of an epoch")

    def _iterate(self) -> Iterator[Any]:
        """Yields the batches of an epoch."""
        raise NotImplementedError(f"{type(self).__name__} has no _iterate, which yields the batches of an epoch")

    def __iter__(self) -> Iterator[Any]:
        for batch in self._iterate():
            yield self._process_batch(batch)

    def _process_batch(self, batch: Any) -> Any:
        """What is given in place of a batch. It is called where the loader is iterated over; trainers override it."""
        return batch


class AsyncDataLoaderMixin:
    """Reads batches ahead on a thread. It stands before the loader's class in the list of bases::

        class AsyncLoader(AsyncDataLoaderMixin, Loader):
            pass

        loader = AsyncLoader(async_loader_queue_size=5, ...)     # the rest goes to Loader
        for batch in loader: ...
        loader.close_async_loader()

    `_iterate` runs on the thread, epoch after epoch: the first batches of the next epoch are read while the last of this
    one are used. An iteration that is left before its end is continued by the next one. An exception in `_iterate` is
    raised where the loader is iterated over, after the batches before it; the next iteration begins an epoch anew.

    Args:
      async_loader_queue_size: how many batches are read ahead. 0: none, and there is no thread.
      others: for the class behind it.

    Raises: ValueError for a negative size.
    """

    def __init__(self, async_loader_queue_size: int = 5, *args: Any, **kwargs: Any) -> None:
        if async_loader_queue_size < 0:
            raise ValueError(f"async_loader_queue_size is {async_loader_queue_size}: it must be 0 or more")
        self.async_loader_queue_size = async_loader_queue_size
        super().__init__(*args, **kwargs)
        self._read_ahead = _Buffer(async_loader_queue_size)
        self._reader: Optional[threading.Thread] = None

    def close_async_loader(self) -> None:
        """Ends the thread and drops what it has read; an iteration in another thread ends. Can be called again. The thread
        ends when `_iterate` has yielded the batch that it is at. After that the loader can't be iterated over."""
        self._read_ahead.close()
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join()

    def __iter__(self) -> Iterator[Any]:
        if self.async_loader_queue_size == 0:
            yield from super().__iter__()  # type: ignore[misc]
            return
        if self._read_ahead.is_closed():
            raise RuntimeError("this loader has been closed by close_async_loader()")
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, name="horovod data loader", daemon=True)
            self._reader.start()
        while True:
            item = self._read_ahead.get()
            if isinstance(item, _Batch):
                yield self._process_batch(item.batch)  # type: ignore[attr-defined]
                continue
            if isinstance(item, _Failure):
                self._reader = None
                raise item.error
            return

    def _read(self) -> None:
        try:
            while not self._read_ahead.is_closed():
                for batch in self._iterate():  # type: ignore[attr-defined]
                    if not self._read_ahead.put(_Batch(batch)):
                        return
                self._read_ahead.put(_EndOfEpoch())
        except BaseException as error:
            self._read_ahead.put(_Failure(error))


class _Batch:
    def __init__(self, batch: Any) -> None:
        self.batch = batch


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _EndOfEpoch:
    pass


class _Buffer:
    """A queue of limited length between two threads, which either can close."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._items: collections.deque[Any] = collections.deque()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, item: Any) -> bool:
        """Waits for room. Returns whether it was put: it is not after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._length)
            if not self._closed:
                self._items.append(item)
                self._changed.notify_all()
            return not self._closed

    def get(self) -> Any:
        """Waits for an item. Returns the end of an epoch after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._items)
            if self._closed:
                return _EndOfEpoch()
            self._changed.notify_all()
            return self._items.popleft()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def is_closed(self) -> bool:
        with self._changed:
            return self._closed
