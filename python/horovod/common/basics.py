"""The life of this process in a world: init, shutdown, ranks and sizes."""

import atexit
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Callable, NoReturn, Optional, Union

from horovod import _ffi
from horovod.common import _built, _origin, _process, _stack, _tracebacks, ops, process_set_recovery
from horovod.common import process_sets as _process_sets
from horovod.common._built import *
from horovod.common._process import *
from horovod.common._process import is_deferred, is_homogeneous, join_world, process, take_move
from horovod.common.exceptions import HorovodInternalError, translated

__all__ = [
    *_built.__all__,
    *_process.__all__,
    "init",
    "is_deferred",
    "is_homogeneous",
    "join_world",
    "process",
    "report",
    "reset",
    "shutdown",
    "start_timeline",
    "stop_timeline",
    "take_move",
]

_MAX_FAILED_ENTRIES = 10  # in a row; the daemon gives up earlier, if it can be reached


def init(comm: Union[Sequence[int], Any, None] = None, process_sets: Any = None) -> None:
    """Joins the world of the job that this process was started in, or makes a world of one. Processes that srun,
    mpirun or torchrun has started together make a job of their own.

    Blocks until all ranks are there. Does nothing if a world is up.

    In an elastic job that is training already, the process gets a provisional rank and size at
    once, and the others train on. It becomes a member of the world at its first collective, or when
    a function decorated with ``hvd.elastic.run`` starts; ranks and sizes may change then.

    Args:
      comm: None, or the list of all ranks. Subsets of ranks and MPI communicators are not
        supported.
      process_sets: a list of :class:`ProcessSet` to register, the same on all ranks; or "dynamic",
        so that sets can be added and removed later.

    Raises:
      NotImplementedError: for an MPI communicator.
      ValueError: `comm` is a subset of the ranks, the process sets are bad or not the same on all
        ranks, or an environment variable of Horovod's has a bad value.
      HorovodInternalError: the world could not be joined, the process that started this one is
        in it, or the others that another launcher has started with it can't be found.
      WorkerReleased: this process is not wanted any more; it ends with code 0.
    """
    _process.check_not_forked()
    static_sets = _process_sets.use(process_sets)
    if comm is not None and not isinstance(comm, (list, tuple, range)):
        raise NotImplementedError("hvd.init(comm=...): this Horovod is built without MPI.")
    if process.world is not None:
        return
    launch = _origin.check()
    if launch is not None:
        from horovod.runner import _launched  # of no use to all others

        _launched.join(launch)
    _process.enter(_ffi.init)
    if comm and sorted(comm) != list(range(_ffi.query("size"))):
        _ffi.shutdown()
        raise ValueError("hvd.init(comm=...): a subset of the ranks is not supported.")
    process.pid = os.getpid()
    process.released = process.failed = False  # that was in another job, or did not end this process
    _origin.note_member()
    _install_hooks()
    _stack.show_on_request()
    process.deferred = _ffi.is_deferred()
    _process.note_world()
    try:
        _survive(lambda: process_set_recovery.enter_first(static_sets))
    except ValueError as error:
        shutdown()
        raise ValueError(f"Horovod initialization failed: {error}") from None


def _survive(enter: Callable[[], None]) -> None:
    """Calls `enter`; if the world breaks meanwhile, goes on to the next one in an elastic job."""
    for failed in range(1, _MAX_FAILED_ENTRIES + 1):
        try:
            return enter()
        except HorovodInternalError as error:
            broken = error.caused_by_peer and os.environ.get("HOROVOD_ELASTIC") == "1"
            if not broken or failed == _MAX_FAILED_ENTRIES:
                raise
            enter = reset


def reset() -> None:
    """Leaves the present world, which is broken or about to change, and joins the next one; blocks
    until that is up.

    The process sets are registered again. Ranks and sizes are the old ones if there was no next
    world.

    Raises:
      HorovodInternalError: the next world could not be joined, or it broke while it formed.
      WorkerReleased: this process is not wanted any more; it ends with code 0.
    """
    _process.check_not_forked()
    if process.world is None:
        init()
        return
    _process.run_leaving_hooks()
    _process.enter_later_world(_ffi.reset)
    _process.run_later_world_hooks()


def shutdown() -> None:
    """Leaves the world; :func:`init` may follow. Does nothing if there is no
    world.

    Raises HorovodInternalError if an operation in a program of JAX has failed, whose results nobody read.
    """
    if process.world is None:
        return
    _process.check_not_forked()
    failure = _process.unseen_failure()
    if failure is not None:
        raise failure
    _process_sets.forget()
    process.world = None
    process.deferred = False
    _origin.forget_member()
    _ffi.shutdown()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Starts to record the operations of all ranks in a file that rank 0 writes. On other ranks it
    only checks the arguments.

    The file is a Chrome trace: open it in https://ui.perfetto.dev or chrome://tracing. A timeline
    that is being recorded ends, and its file is closed.

    Args:
      file_path: where rank 0 writes.
      mark_cycles: whether the rounds of the runtime's engine are in it.

    Raises:
      ValueError: before init; HOROVOD_TIMELINE was not set then, neither to a file nor to DYNAMIC;
        or the file can't be written.
    """
    _process.current()
    _ffi.start_timeline(os.fspath(file_path), mark_cycles)


def stop_timeline() -> None:
    """Ends what :func:`start_timeline` began, and waits until the file is complete. On ranks other
    than 0, or if nothing is recorded, it does nothing.

    Raises:
      ValueError: before init.
      OSError: the file is not complete; says why.
    """
    _process.current()
    try:
        _ffi.stop_timeline()
    except HorovodInternalError as error:
        # No reason for an elastic job to roll back.
        raise OSError(str(error)) from None


# A process that ends normally leaves the world; one that fails reports why instead.


def _install_hooks() -> None:
    if process.hooked:
        return
    process.hooked = True
    atexit.register(_at_exit)
    sys.excepthook = _reporting(sys.excepthook)
    sys.exit = _noting_status(sys.exit)


def _at_exit() -> None:
    if process.world is None or process.released or process.pid != os.getpid():
        return
    if process.failed:
        ops.keep_buffers_in_flight()
        return
    failure = _process.unseen_failure()
    if failure is not None:
        report(failure)
        print(_tracebacks.in_a_line(failure), file=sys.stderr)
        ops.keep_buffers_in_flight()
        return
    try:
        shutdown()
    except HorovodInternalError as error:
        print(f"Horovod could not leave the job in good order: {error}", file=sys.stderr)


def _caused_by_peer(error: Optional[BaseException]) -> bool:
    seen = set()
    while error is not None and id(error) not in seen:
        known = translated(error)
        if isinstance(known, HorovodInternalError) and known.caused_by_peer:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def report(error: BaseException) -> None:
    """Reports the error that ends this process to the daemon. Does nothing before init."""
    if process.pid == os.getpid():
        process.failed = True
        process.status = 1
        process.blames_peer = _caused_by_peer(error)
        text = _tracebacks.described(error)
        _ffi.report_failure(text.splitlines()[0], process.blames_peer)


def leave(error: Optional[BaseException]) -> None:
    """Leaves the world, whatever becomes of it, in a process that lives on: in good order, or because of
    `error`, which the daemon is told. Does nothing if there is no world."""
    if process.world is None or process.pid != os.getpid():
        return
    if error is None and process.failed:
        return  # it has said why
    if error is not None:
        report(error)  # first, so that the others hear the reason
    try:
        shutdown()
    except HorovodInternalError as late:
        error = error or late
    if error is not None:
        report(error)  # that it has shut down meant that it was done


def _reporting(previous: Callable[..., Any]) -> Callable[..., None]:
    """An excepthook that reports the error that ends this process, then calls `previous`; in place
    of Python's own it prints a shortened traceback, or one line."""

    def excepthook(kind: type[BaseException], value: BaseException, traceback: Optional[TracebackType]) -> None:
        report(value)
        if previous is not sys.__excepthook__ or value is None or sys.stderr is None:
            previous(kind, value, traceback)
        elif _caused_by_peer(value):
            print(_tracebacks.in_a_line(value), file=sys.stderr)
        else:
            print(_tracebacks.folded(value), file=sys.stderr, end="")

    return excepthook


def _noting_status(previous: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    """A sys.exit that remembers the status, and whether it means failure: atexit functions do not see it."""

    def exit(status: Any = None, /) -> NoReturn:
        if process.pid == os.getpid():
            process.failed = status not in (None, 0, False)
            process.status = status & 0xFF if isinstance(status, int) else int(process.failed)
        previous(status)

    return exit
