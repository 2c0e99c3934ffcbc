"""A base class of loaders of batches, and a mixin that reads ahead on a thread."""

import threading
from collections.abc import Iterator
from typing import Any, Optional

from horovod.data.read_ahead import ReadAhead


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
        self.__lock = threading.Lock()
        self.__reader: Optional[ReadAhead[Any]] = None
        self.__closed = False

    def close_async_loader(self) -> None:
        """Ends the thread and drops what it has read; an iteration in another thread ends. Can be called again. The thread
        ends when `_iterate` has yielded the batch that it is at. After that the loader can't be iterated over."""
        with self.__lock:
            self.__closed = True
            reader = self.__reader
        if reader is not None:
            reader.close()

    def __iter__(self) -> Iterator[Any]:
        if self.async_loader_queue_size == 0:
            yield from super().__iter__()  # type: ignore[misc]
            return
        reader = self.__reading()
        while True:
            try:
                item = next(reader, _END_OF_EPOCH)
            except Exception:
                self.__reader = None  # the next iteration begins anew
                raise
            if item is _END_OF_EPOCH:
                return
            yield self._process_batch(item)  # type: ignore[attr-defined]

    def __reading(self) -> ReadAhead[Any]:
        with self.__lock:
            if self.__closed:
                raise RuntimeError("this loader has been closed by close_async_loader()")
            if self.__reader is None:
                self.__reader = ReadAhead(self.__epochs(), self.async_loader_queue_size)
            return self.__reader

    def __epochs(self) -> Iterator[Any]:
        while True:
            yield from self._iterate()  # type: ignore[attr-defined]
            yield _END_OF_EPOCH


_END_OF_EPOCH = object()
