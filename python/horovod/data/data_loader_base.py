"""A base class of loaders of batches, and a mixin that reads ahead on a thread."""

import threading
from collections.abc import Iterator
from typing import Any, Optional

from horovod.data.read_ahead import ReadAhead


class BaseDataLoader:
    """A loader that gives the batches of an epoch each time it is iterated over.

    A subclass defines `__len__`, the number of batches of an epoch, and `_iterate`, which yields them.

    Example:
      >>> from horovod.data import BaseDataLoader
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
        """Returns what the loader gives in place of `batch`. It runs in the thread that iterates over the loader; trainers override
        it.
        """
        return batch


class AsyncDataLoaderMixin:
    """Reads batches ahead on a thread. It precedes the loader's class in the list of bases.

    `_iterate` runs on the thread, epoch after epoch: the first batches of the next epoch are read while the last batches of
    this one are used. An iteration that is left before its end is continued by the next one. An exception in `_iterate`, also
    SystemExit, is raised where the loader is iterated over, after the batches before it; the next iteration begins a new epoch.

    Args:
      async_loader_queue_size: how many batches are read ahead. 0: no thread is used.
      debug_data_loader: kept as an attribute for subclasses; nothing is printed.
      args, kwargs: for the next class in the list of bases.

    Raises:
      ValueError: the size is negative.

    Example:
      >>> from horovod.data import AsyncDataLoaderMixin, BaseDataLoader
      >>> class Squares(BaseDataLoader):
      ...     def __len__(self):
      ...         return 3
      ...     def _iterate(self):
      ...         yield from (n * n for n in range(3))
      >>> class AsyncSquares(AsyncDataLoaderMixin, Squares):
      ...     pass
      >>> loader = AsyncSquares(async_loader_queue_size=2)
      >>> list(loader)
      [0, 1, 4]
      >>> loader.close_async_loader()
    """

    def __init__(
        self, async_loader_queue_size: int = 64, debug_data_loader: bool = False, *args: Any, **kwargs: Any
    ) -> None:
        if async_loader_queue_size < 0:
            raise ValueError(f"async_loader_queue_size is {async_loader_queue_size}: it must be 0 or more")
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        super().__init__(*args, **kwargs)
        self.__lock = threading.Lock()
        self.__reader: Optional[ReadAhead[Any]] = None
        self.__closed = False

    def close_async_loader(self) -> None:
        """Ends the thread and drops the batches that it has read; an iteration in another thread ends. It may be called again. The
        call returns when `_iterate` has yielded its current batch. After that the loader can't be iterated over.
        """
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
            except BaseException:
                if reader.has_ended:  # unlike after a Ctrl-C here
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
