"""Joining and leaving a world: init, shutdown, reset and the timeline."""

import atexit
import math
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

_MAX_FAILED_ENTRIES = 10


def init(comm: Union[Sequence[int], Any, None] = None, process_sets: Any = None) -> None:
    """Joins the world of the job that started this process; without a job, makes a world of one process. Processes that srun,
    mpirun or torchrun has started together form a job.

    Blocks until all ranks have joined. Does nothing if the process is in a world already.

    In an elastic job that is training already, the process gets provisional ranks and sizes at once, and the other ranks
    train on. It becomes a member of the world at its first collective, or when a function decorated with
    ``hvd.elastic.run`` starts; ranks and sizes may change then.

    Args:
      comm: None, or the list of all ranks. Subsets of ranks and MPI communicators are not supported.
      process_sets: the :class:`ProcessSet` objects to register, as a list that is the same on all ranks; or "dynamic", so
        that sets can be added and removed later.

    Raises:
      ValueError: `comm` is an MPI communicator, or a subset of the ranks; the process sets are invalid or differ between ranks; or one of Horovod's
        environment variables has an invalid value.
      HorovodInternalError: the world could not be joined; the parent process is in it already; or the other processes of
        the same launch can't be found.
      WorkerReleased: the job does not need this process any more. If uncaught, it ends the process with code 0.

    Example:
      >>> hvd.init()
      >>> hvd.rank(), hvd.size()
      (0, 1)
    """
    _process.check_not_forked()
    static_sets = _process_sets.use(process_sets)
    ranks = _listed(comm)
    if process.world is not None:
        return
    join_launch("hvd.init()")
    _process.enter(_ffi.init)
    if ranks and sorted(ranks) != list(range(_ffi.query("size"))):
        _ffi.shutdown()
        raise ValueError("hvd.init(comm=...): a subset of the ranks is not supported.")
    process.pid = os.getpid()
    process.released = process.failed = False  # that was in another job, or did not end this process
    process.no_collectives = ""
    _origin.note_member()
    _install_hooks()
    _stack.show_on_request()
    process.deferred = _ffi.is_deferred()
    if process.deferred:
        _ffi.set_join(_process.join_world_for_graph)
    _process.note_world()
    try:
        _survive(lambda: _process.prepare(lambda: process_set_recovery.enter_first(static_sets)))
    except ValueError as error:
        shutdown()
        raise ValueError(f"Horovod initialization failed: {error}") from None


def join_launch(call: str, timeout: float = math.inf) -> None:
    """Makes this process a worker of the job of its launch, if a launcher other than Horovod's has started several processes, and
    blocks until all have called this, for at most `timeout` seconds or those of HOROVOD_START_TIMEOUT. The process is in no world
    yet. `call` is what the script has called, for messages.

    Raises:
      HorovodInternalError: the others of the launch can't be found.
    """
    launch = _origin.check(call)
    if launch is None:
        return
    from horovod.runner import _launched  # of no use to all others

    _launched.join(launch, call, timeout)
    process.pid = os.getpid()
    _install_hooks()


def _listed(comm: Any) -> list[int]:
    try:
        return [] if comm is None else list(comm)
    except TypeError:
        raise ValueError("hvd.init(comm=...): this Horovod is built without MPI.") from None


def _survive(enter: Callable[[], None]) -> None:
    """Calls `enter`. If the world breaks meanwhile in an elastic job, joins the next world instead."""
    failed = 0
    while True:
        try:
            return enter()
        except HorovodInternalError as error:
            failed += not error._lost_world  # the daemon bounds how long worlds are lost in a row
            if not (error.caused_by_peer and _process.is_elastic()) or failed == _MAX_FAILED_ENTRIES:
                raise
            enter = reset


def reset() -> None:
    """Leaves the current world, which is broken or about to change, and joins the next one; blocks until that world is up.

    The process sets are registered again. If there is no next world, ranks and sizes stay as they were.

    Raises:
      HorovodInternalError: the next world could not be joined, or it broke while it formed.
      WorkerReleased: the job does not need this process any more. If uncaught, it ends the process with code 0.
    """
    _process.check_not_forked()
    if process.world is None:
        init()
        return
    _process.run_leaving_hooks()
    _process.enter_later_world(_ffi.reset)
    _process.run_later_world_hooks()


def shutdown() -> None:
    """Leaves the world; :func:`init` may be called again. Does nothing if the process is in no world.

    Raises:
      HorovodInternalError: an operation in a JAX program has failed, and no code has read its result.
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
    """Starts to record the operations of all ranks in a file that rank 0 writes. Other ranks only check the arguments.

    The file is a Chrome trace: open it in https://ui.perfetto.dev or chrome://tracing. A recording that is running ends
    first, and its file is closed.

    Args:
      file_path: the path of the file, on rank 0's host.
      mark_cycles: whether the file shows the cycles of the runtime's background thread.

    Raises:
      ValueError: Horovod is not initialized; HOROVOD_TIMELINE was set neither to a file nor to DYNAMIC before init; or the
        file can't be written.

    Example:
      >>> import os, tempfile
      >>> path = os.path.join(tempfile.mkdtemp(), "timeline.json")
      >>> hvd.start_timeline(path)
      >>> hvd.stop_timeline()
      >>> os.path.exists(path)
      True
    """
    _process.current()
    _ffi.start_timeline(os.fspath(file_path), mark_cycles)


def stop_timeline() -> None:
    """Ends the recording that :func:`start_timeline` has started, and waits until the file is complete. Does nothing on ranks
    other than 0, or if there is no recording.

    Raises:
      ValueError: Horovod is not initialized.
      OSError: the file is incomplete; the text says why.
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


def fail(reason: str, ends_job: bool = False) -> None:
    """Reports to the daemon that this process is about to fail, and why.

    Args:
      reason: one line.
      ends_job: whether no other process of the job shall go on.
    """
    process.failed = True
    process.status = 1
    _ffi.report_failure(reason, False, ends_job)


def leave(error: Optional[BaseException]) -> None:
    """Leaves the world in a process that lives on: cleanly, or with `error`, which is reported to the daemon. Does nothing if
    the process is in no world.
    """
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


def _show(kind: type[BaseException], value: BaseException, traceback: Optional[TracebackType]) -> None:
    """Prints a shortened traceback or one line: an excepthook in place of Python's default."""
    if value is not None and sys.stderr is not None and _caused_by_peer(value):
        print(_tracebacks.in_a_line(value) + _why_not_survived(), file=sys.stderr)
    else:
        _tracebacks.show(kind, value, traceback)


# Before init, too: a script may never call it, or it may fail.
if sys.excepthook in (sys.__excepthook__, _tracebacks.show):
    sys.excepthook = _show


def _reporting(previous: Callable[..., object]) -> Callable[..., None]:
    """Returns an excepthook that reports the error that ends this process, then calls `previous`, or :func:`_show` in place of
    Python's default.
    """
    show = _show if previous is sys.__excepthook__ else previous

    def excepthook(kind: type[BaseException], value: BaseException, traceback: Optional[TracebackType]) -> None:
        report(value)
        show(kind, value, traceback)

    return excepthook


def _why_not_survived() -> str:
    """Returns what is to add to the failure of another rank that ends this process, too."""
    if os.environ.get("HOROVOD_ELASTIC") != "1" or process.uses_run:
        return ""
    return "; the script has called no function under hvd.elastic.run, so this process can't go on, and another begins at the start"


def _noting_status(previous: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    """Returns a sys.exit that records the status and whether it means failure, because atexit functions can't read it."""

    def exit(status: object = None, /) -> NoReturn:
        if process.pid == os.getpid():
            process.failed = status not in (None, 0, False)
            process.status = status & 0xFF if isinstance(status, int) else int(process.failed)
        previous(status)

    return exit
