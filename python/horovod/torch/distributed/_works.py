"""The works of torch.distributed: operations that were started."""

import collections
import contextlib
import datetime
import functools
import os
import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch._C._distributed_c10d import AllreduceOptions
from torch.distributed import Work

from horovod import _ffi
from horovod.common.dropped import DroppedOperations
from horovod.common.exceptions import HorovodInternalError

Finish = Callable[[int], object]  # of a handle

_PATIENCE = 5.0  # seconds for a callback to return at the end


class WorkTimeout(RuntimeError):
    """A work is not done within the time that its caller waits."""


class StartedWork(Work):
    """An operation of the runtime. `finish` takes the results of the handle, which is then released. The tensors of `result`, and
    what `keep` refers to, are the memory of the operation. Thread-safe.
    """

    def __init__(self, handle: int, result: Any, finish: Optional[Finish], keep: object, waiter: "Waiter") -> None:
        super().__init__()
        self._handle = handle
        self._result = result
        self._finish = finish
        self._keep = keep
        self._waiter = waiter
        self._lock = threading.Lock()
        self._ended = False
        self._error: Optional[BaseException] = None
        self._future: Optional[torch.futures.Future[Any]] = None
        self._after_wait: Optional[Callable[[], object]] = None
        self._pid = os.getpid()

    # How the runtime is asked about the handle; another kind of work overrides these.

    def _poll(self) -> bool:
        return _ffi.poll(self._handle)

    def _await(self) -> None:
        _ffi.wait(self._handle)

    def _await_a_while(self, seconds: float) -> None:
        _ffi.wait_a_while(self._handle, seconds)

    def _release(self) -> None:
        _ffi.release(self._handle)

    # The interface of torch.

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """Blocks until the operation is done.

        Raises HorovodInternalError, a RuntimeError: it has failed. RuntimeError: it is not done within `timeout`; zero stands for
        the group's.
        """
        try:
            return self._wait(timeout)
        finally:
            if self._after_wait is not None and self._ended:
                with self._lock:
                    after, self._after_wait = self._after_wait, None
                if after is not None:  # no other thread has called it
                    after()

    def after_wait(self, after: Callable[[], object]) -> None:
        """Has the first :meth:`wait` that finds the operation ended call `after` before it returns."""
        self._after_wait = after

    def _wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        if not self._ended:
            if os.getpid() != self._pid:
                raise RuntimeError("A forked child can't wait for an operation of its parent.")
            if timeout is not None and timeout > datetime.timedelta(0):
                self._wait_until(time.monotonic() + timeout.total_seconds(), timeout)
            self._conclude()
        if self._error is not None:
            raise self._error
        return True

    def _wait_until(self, deadline: float, timeout: datetime.timedelta) -> None:
        while not self.is_completed():
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkTimeout(
                    f"The timeout of {timeout.total_seconds():g} s is over, and the operation is not done."
                )
            self._await_a_while(left)

    def _conclude(self) -> None:
        """Waits without a limit, takes the results and releases the handle, unless another thread has done so. What a signal's
        handler raises meanwhile ends only this call.
        """
        error: Optional[RuntimeError] = None
        try:
            self._await()
        except RuntimeError:
            if self._ended:
                return  # another thread has released the handle meanwhile
            if not self.is_completed():
                raise
            error = self._error_of_done()
        with self._lock:
            if self._ended:
                return
            try:
                if error is None and self._finish is not None:
                    with torch.no_grad():
                        self._finish(self._handle)
            except RuntimeError as raised:
                error = raised
            self._error = error
            self._ended = True
            self._finish = self._keep = None
            self._release()
        _no_longer_shown(self)

    def _error_of_done(self) -> Optional[RuntimeError]:
        """Asks a second time: the first error may have come from a signal's handler."""
        try:
            self._await()
        except RuntimeError as error:
            return error
        return None

    def is_completed(self) -> bool:
        """Whether :meth:`wait` would return at once."""
        try:
            return self._ended or self._poll()
        except RuntimeError:
            if self._ended:  # another thread has released the handle
                return True
            raise

    def is_success(self) -> bool:
        """Whether the operation is done and has not failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        """Returns the operation's error; None: it has none, or is not done."""
        if not self._ended and self.is_completed():
            self._conclude()
        return self._error

    def synchronize(self) -> None:
        """Waits as :meth:`wait` does."""
        self.wait()

    def result(self) -> Any:
        """Returns the operation's output tensors."""
        return self._result

    def get_future(self) -> "torch.futures.Future[Any]":
        """Returns a future of the operation's output tensors, which another thread completes."""
        with self._lock:
            if self._future is not None:
                return self._future
            self._future = torch.futures.Future()
        self._waiter.add(self)
        return self._future

    def outcome(self) -> Callable[[], None]:
        """Waits, and returns the function that completes the future and so runs its callbacks. Called by the :class:`Waiter`."""
        assert self._future is not None
        try:
            self._wait()
        except Exception as error:
            return functools.partial(self._future.set_exception, error)
        return functools.partial(self._future.set_result, self._result)

    def __del__(self) -> None:
        # Nobody waits for it any more. The runtime still uses the memory, so the work lives on.
        if getattr(self, "_ended", True) or sys.is_finalizing() or os.getpid() != self._pid:
            return
        dropped.add(self._heir())

    def _heir(self) -> "StartedWork":
        return StartedWork(self._handle, self._result, self._finish, self._keep, self._waiter)


class TransferWork(StartedWork):
    """A message that is sent or received. Waiting without a limit ends after the `limit` of its group, in seconds; `what` says in
    messages what is waited for.
    """

    def __init__(
        self, handle: int, result: Any, finish: Optional[Finish], keep: object, what: str = "", limit: float = 0.0
    ) -> None:
        super().__init__(handle, result, finish, keep, Waiter())
        self._what = what
        self._limit = limit
        self._source = -1

    def _poll(self) -> bool:
        return _ffi.poll_transfer(self._handle)

    def _await(self) -> None:
        deadline = time.monotonic() + self._limit
        source = None
        while source is None:
            source = _ffi.wait_transfer(self._handle, max(deadline - time.monotonic(), 0.0))
            if source is None and time.monotonic() >= deadline:
                raise WorkTimeout(f"The timeout of {self._limit:g} s is over, and {self._what}.")
        self._source = source

    def _await_a_while(self, seconds: float) -> None:
        with contextlib.suppress(HorovodInternalError):  # it is done, and says so when it is concluded
            _ffi.wait_transfer(self._handle, seconds)

    def _release(self) -> None:
        _ffi.forget_transfer(self._handle)

    def _heir(self) -> StartedWork:
        return TransferWork(self._handle, self._result, self._finish, self._keep, self._what, self._limit)

    def get_future(self) -> "torch.futures.Future[Any]":
        """Returns a future of the tensor. It has a thread of its own: a message may come after many operations that are started
        later.
        """
        future = super().get_future()
        self._waiter.close()  # once this future is complete
        return future

    def source_rank(self) -> int:
        """Returns the rank of the group that has sent what was received. The work is done."""
        return self._source

    _source_rank = source_rank


class EndedWork(Work):
    """An operation that was done when it returned."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """Returns at once."""
        return True

    def synchronize(self) -> None:
        """Returns at once."""

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True

    def exception(self) -> None:
        """None."""

    def result(self) -> Any:
        """Returns the operation's output tensors."""
        return self._result

    def get_future(self) -> "torch.futures.Future[Any]":
        """Returns a completed future of the output tensors."""
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result(self._result)
        return future


# Before torch 2.8 C++ code holds a work of Python only as long as Python does itself: so works in flight are kept here, and
# the last ones that have ended, which C++ code may still ask.
_KEEPS_PYTHONS_WORKS = hasattr(AllreduceOptions(), "asyncOp")
_shown: set[StartedWork] = set()
_ended_lately: collections.deque[StartedWork] = collections.deque(maxlen=1000)


def shown(work: StartedWork) -> Work:
    """Returns the work, which C++ code of torch may keep after Python has forgotten it."""
    if not _KEEPS_PYTHONS_WORKS:
        _shown.add(work)
    return work


def _no_longer_shown(work: StartedWork) -> None:
    if work in _shown:
        _ended_lately.append(work)
        _shown.discard(work)


class WorksTogether(Work):
    """Several operations as one work."""

    def __init__(self, works: Sequence[Work]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """Waits for all; raises the first error."""
        for work in self._works:
            work.wait(timeout) if timeout is not None else work.wait()
        return True

    def synchronize(self) -> None:
        """Waits for all."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether all are."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """Whether all are."""
        return all(work.is_success() for work in self._works)

    def exception(self) -> Optional[BaseException]:
        """Returns the first error."""
        return next((error for error in (work.exception() for work in self._works) if error is not None), None)

    def result(self) -> list[torch.Tensor]:
        """Returns the output tensors of all."""
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> "torch.futures.Future[Any]":
        """Returns a future of the output tensors of all."""
        together = torch.futures.collect_all([work.get_future() for work in self._works])
        return together.then(lambda ended: [tensor for one in ended.value() for tensor in one.value()])


class Waiter:
    """The threads that complete the futures of one group's works. The first starts with the first future; others start while
    callbacks of futures run, because a callback may wait for another future (as those of PowerSGD do).
    """

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[Optional[StartedWork]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._ending: list[threading.Thread] = []
        self._in_callbacks = 0  # of the threads
        self._closed = False

    def add(self, work: StartedWork) -> None:
        """Has the work's future completed; after :meth:`close` by the calling thread, since nobody would wait for another one."""
        with self._lock:
            if not self._closed:
                self._works.put(work)
                return self._leave_no_work_alone()
        work.outcome()()

    def close(self) -> None:
        """Ends the threads once all works so far are done."""
        with self._lock:
            self._closed = True
            ending, self._threads = self._threads, []
        for _ in ending:
            self._works.put(None)
        self._ending += ending

    def join(self) -> None:
        """Waits for the threads that end, before the interpreter does: a thread within a callback would abort the process."""
        for thread in self._ending:
            if thread is not threading.current_thread():
                thread.join(_PATIENCE)

    def _leave_no_work_alone(self) -> None:
        if self._in_callbacks >= len(self._threads) and not self._works.empty():
            thread = threading.Thread(target=self._run, name="horovod futures", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self) -> None:
        while True:
            work = self._works.get()
            if work is None:
                return
            complete = work.outcome()
            with self._lock:
                self._in_callbacks += 1
                self._leave_no_work_alone()
            complete()
            with self._lock:
                self._in_callbacks -= 1
            del work, complete  # while this thread waits for the next


def _release_if_done(work: StartedWork) -> bool:
    return work.exception() is not None or work.is_completed()


dropped = DroppedOperations(_release_if_done)  # works that nobody waits for
