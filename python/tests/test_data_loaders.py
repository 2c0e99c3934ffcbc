"""horovod.data: loaders of batches, with and without a thread that reads ahead."""

import itertools
import sys
import threading

import pytest

from horovod.data import AsyncDataLoaderMixin, BaseDataLoader


class Numbers(BaseDataLoader):
    """`epochs` says of each epoch what it yields; an exception is raised."""

    def __init__(self, *epochs):
        self._epochs = itertools.cycle(epochs)
        self.threads = set()
        self.read = threading.Semaphore(0)  # released for each item that was asked for

    def __len__(self):
        return 3

    def _iterate(self):
        for item in next(self._epochs):
            self.threads.add(threading.current_thread())
            self.read.release()
            if isinstance(item, Exception):
                raise item
            yield item

    def _process_batch(self, batch):
        self.threads_of_processing = threading.current_thread()
        return 10 * batch


class AsyncNumbers(AsyncDataLoaderMixin, Numbers):
    pass


@pytest.mark.parametrize("make", [Numbers, lambda *epochs: AsyncNumbers(0, False, *epochs)], ids=["plain", "size 0"])
def test_without_a_thread(make):
    loader = make([1, 2, 3], [4])
    assert (list(loader), list(loader), len(loader)) == ([10, 20, 30], [40], 3)
    assert loader.threads == {threading.current_thread()}


def test_defaults_are_horovods():
    plain = AsyncNumbers()
    assert (plain.async_loader_queue_size, plain.debug_data_loader) == (64, False)
    loader = AsyncNumbers(2, True, [1, 2, 3])
    assert loader.debug_data_loader and list(loader) == [10, 20, 30]
    loader.close_async_loader()


@pytest.mark.parametrize("size", [1, 2, 100])
def test_thread_reads_epoch_after_epoch(size):
    loader = AsyncNumbers(size, False, [1, 2, 3], [], [4])
    for _ in range(3):
        assert [list(loader), list(loader), list(loader)] == [[10, 20, 30], [], [40]]
    loader.close_async_loader()
    (reader,) = loader.threads
    assert reader is not threading.current_thread() and not reader.is_alive()
    assert loader.threads_of_processing is threading.current_thread()


def test_reads_ahead_as_much_as_asked_for():
    loader = AsyncNumbers(2, False, range(1, 10))
    items = iter(loader)
    assert next(items) == 10
    for _ in range(4):  # one is used, two wait, one is held by the reader
        assert loader.read.acquire(timeout=60)
    assert next(items) == 20
    assert loader.read.acquire(timeout=60)
    assert not loader.read.acquire(blocking=False)
    loader.close_async_loader()


def test_an_iteration_that_was_left_is_continued():
    loader = AsyncNumbers(2, False, [1, 2, 3])
    assert next(iter(loader)) == 10
    assert list(loader) == [20, 30]
    assert list(loader) == [10, 20, 30]
    loader.close_async_loader()


def test_exception_comes_after_the_batches_before_it():
    loader = AsyncNumbers(5, False, [1, KeyError("mine")], [2])
    items = iter(loader)
    assert next(items) == 10
    with pytest.raises(KeyError, match="mine"):
        next(items)
    assert list(loader) == [20]
    loader.close_async_loader()


def test_any_end_of_the_thread_is_raised_where_the_loader_is_used():
    class Leaving(AsyncDataLoaderMixin, Numbers):
        def _iterate(self):
            yield 1
            if next(self._epochs):
                sys.exit("mine")

    loader = Leaving(5, False, True, False)
    items, seen = iter(loader), []

    def use():
        try:
            seen.extend(items)
        except SystemExit as error:
            seen.append(error.code)

    user = threading.Thread(target=use, daemon=True)
    user.start()
    user.join(60)
    assert not user.is_alive() and seen == [10, "mine"]
    assert list(loader) == [10]
    loader.close_async_loader()


def test_closing():
    loader = AsyncNumbers(1, False, range(1, 100))
    loader.close_async_loader()
    loader.close_async_loader()
    with pytest.raises(RuntimeError, match="has been closed by close_async_loader"):
        next(iter(loader))
    loader = AsyncNumbers(1, False, range(1, 100))
    items = iter(loader)
    assert next(items) == 10
    loader.close_async_loader()  # although the reader waits for room
    assert list(items) == []


def test_closing_ends_an_iteration_that_waits():
    begun, goes_on = threading.Event(), threading.Event()

    class Slow(AsyncDataLoaderMixin, Numbers):
        def _iterate(self):
            begun.set()
            goes_on.wait(60)
            yield 1

    loader, seen = Slow(2), []
    user = threading.Thread(target=lambda: seen.extend(loader))
    user.start()
    assert begun.wait(60)
    closer = threading.Thread(target=loader.close_async_loader)
    closer.start()
    user.join(60)
    assert not user.is_alive() and seen == []
    goes_on.set()
    closer.join(60)
    assert not closer.is_alive()


def test_wrong_use_is_said():
    with pytest.raises(ValueError, match="async_loader_queue_size is -1: it must be 0 or more"):
        AsyncNumbers(-1)
    with pytest.raises(NotImplementedError, match="BaseDataLoader has no _iterate"):
        next(iter(BaseDataLoader()))
    with pytest.raises(NotImplementedError, match="BaseDataLoader has no __len__"):
        len(BaseDataLoader())
