"""The life of this process in a world: init, shutdown, ranks and sizes."""

import atexit
import os
import sys
from typing import Any, Callable, NamedTuple, Optional, Sequence, Union

from horovod import _ffi
from horovod.common import _origin, _stack, _tracebacks
from horovod.common._built import (  # noqa: F401
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from horovod.common.exceptions import NOT_INITIALIZED, HorovodInternalError, WorkerReleased


_MAX_FAILED_ENTRIES = 10  # in a row; the daemon gives up earlier, if it can be reached


class _World(NamedTuple):
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    is_homogeneous: int


class _Process:
    """What this process knows of its world. Ranks are kept here so that forked children can read
    them too."""

    def __init__(self) -> None:
        self.world: Optional[_World] = None
        self.deferred = False  # `world` is provisional
        self.moved = False  # the world gave another place than the provisional one
        self.released = False  # and about to end
        self.pid = 0  # that called init; 0: none did
        self.forked = False  # from the one that called init
        self.hooked = False
        self.failed = False  # an exception or sys.exit(nonzero) is ending this process
        self.on_init = []


_process = _Process()


def _note_fork() -> None:
    _process.forked = _process.pid != 0


os.register_at_fork(after_in_child=_note_fork)


def on_init(callback) -> None:
    """Has `callback()` called whenever this process comes into a world: at init, join and reset."""
    _process.on_init.append(callback)


def _enter(call: Callable[[], None]) -> None:
    try:
        call()
    except WorkerReleased:
        _process.released = True
        raise


def _note_world() -> None:
    for callback in _process.on_init:
        callback()
    _process.world = _World(*(_ffi.query(field) for field in _World._fields))


def check_not_forked() -> None:
    """Raises :class:`HorovodInternalError` in a child forked after init: the runtime's threads are
    not there."""
    if _process.forked:
        raise HorovodInternalError(
            "This process was forked after hvd.init(): it can read ranks and sizes, but "
            "collectives, init() and shutdown() belong to process {}.".format(_process.pid)
        )


def is_ready() -> bool:
    """Whether this process is in a world and can run collectives."""
    return _process.world is not None and not _process.deferred and not _process.forked


def note_alive() -> None:
    """Takes back that this process is failing: an exit that was asked for was prevented, since it
    goes on."""
    _process.failed = False


def init(comm: Union[Sequence[int], Any, None] = None, process_sets: Any = None) -> None:
    """Joins the world of the job that this process was started in, or makes a world of one.

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
        in it, or this is one of several processes that torchrun, mpirun or srun has started.
      WorkerReleased: this process is not wanted any more; it ends with code 0.
    """
    from horovod.common import process_sets as sets

    check_not_forked()
    static_sets = sets.use(process_sets)
    if comm is not None and not isinstance(comm, (list, tuple, range)):
        raise NotImplementedError("hvd.init(comm=...): this Horovod is built without MPI.")
    if _process.world is not None:
        return
    _origin.check()
    _enter(_ffi.init)
    if comm and sorted(comm) != list(range(_ffi.query("size"))):
        _ffi.shutdown()
        raise ValueError("hvd.init(comm=...): a subset of the ranks is not supported.")
    _process.pid = os.getpid()
    _origin.note_member()
    _install_hooks()
    _process.deferred = _ffi.is_deferred()
    _note_world()
    try:
        _survive(lambda: _process_set_recovery().enter_first(static_sets))
    except ValueError as error:
        shutdown()
        raise ValueError("Horovod initialization failed: {}".format(error)) from None


def _process_set_recovery() -> Any:
    from horovod.common import process_set_recovery

    return process_set_recovery


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


def is_deferred() -> bool:
    """Whether :func:`init` has given this process only a provisional place."""
    return _process.deferred


def join_world() -> None:
    """Makes a process that :func:`init` has deferred a member of the next world; blocks until that
    is up. Ranks and sizes may change.

    Does nothing if the process is in a world, or before init. Raises as :func:`reset`.
    """
    if not _process.deferred:
        return
    check_not_forked()
    provisional = _process.world
    _enter(_ffi.join_world)
    _process.deferred = False
    _note_world()
    _process.moved = _process.world != provisional
    _process_set_recovery().enter()


def take_move() -> bool:
    """Whether joining the world gave this process other ranks or sizes than init; true once."""
    moved, _process.moved = _process.moved, False
    return moved


def reset() -> None:
    """Goes from the present world, which is broken or about to change, to the next one; blocks
    until that is up.

    The process sets are registered again. Ranks and sizes are the old ones if there was no next
    world.

    Raises:
      HorovodInternalError: the next world could not be joined, or it broke while it formed.
      WorkerReleased: this process is not wanted any more; it ends with code 0.
    """
    check_not_forked()
    if _process.world is None:
        init()
        return
    _enter(_ffi.reset)
    _process.deferred = False
    _note_world()
    _process_set_recovery().enter()


def shutdown() -> None:
    """Leaves the world in good order; :func:`init` may follow. Does nothing if there is no
    world."""
    if _process.world is None:
        return
    from horovod.common import process_sets as sets

    check_not_forked()
    sets.forget()
    _process.world = None
    _process.deferred = False
    _origin.forget_member()
    _ffi.shutdown()


def is_initialized() -> bool:
    """Whether a world is up. It stays up, though unusable, when another rank has failed."""
    return _process.world is not None


def _world() -> _World:
    world = _process.world
    if world is None:
        raise ValueError(NOT_INITIALIZED)
    return world


def rank() -> int:
    """This process's number in the world, from 0. Raises ValueError before init."""
    return _world().rank


def size() -> int:
    """How many processes the world has. Raises ValueError before init."""
    return _world().size


def local_rank() -> int:
    """This process's number on its host, from 0. Raises ValueError before init."""
    return _world().local_rank


def local_size() -> int:
    """How many processes of the world are on this host. Raises ValueError before init."""
    return _world().local_size


def cross_rank() -> int:
    """The number of this host among the hosts that have this local rank. Raises ValueError before
    init."""
    return _world().cross_rank


def cross_size() -> int:
    """How many hosts have this local rank. Raises ValueError before init."""
    return _world().cross_size


def is_homogeneous() -> bool:
    """Whether all hosts have the same number of ranks. Raises ValueError before init."""
    return bool(_world().is_homogeneous)


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Starts to record what all ranks do, for a file that rank 0 writes. Elsewhere it only checks.

    The file is a Chrome trace: open it in https://ui.perfetto.dev or chrome://tracing. A timeline
    that is being recorded ends, and its file is closed.

    Args:
      file_path: where rank 0 writes.
      mark_cycles: whether the rounds of the runtime's engine are in it.

    Raises:
      ValueError: before init; HOROVOD_TIMELINE was not set then, neither to a file nor to DYNAMIC;
        or the file can't be written.
    """
    _world()
    _ffi.start_timeline(os.fspath(file_path), mark_cycles)


def stop_timeline() -> None:
    """Ends what :func:`start_timeline` began, and waits until the file is complete. On ranks other
    than 0, or if nothing is recorded, it does nothing.

    Raises:
      ValueError: before init.
      OSError: the file is not complete; says why.
    """
    _world()
    try:
        _ffi.stop_timeline()
    except HorovodInternalError as error:
        # No reason for an elastic job to roll back.
        raise OSError(str(error)) from None


# A process that ends in good order says so; one that fails must not, and says why instead.


def _install_hooks() -> None:
    if _process.hooked:
        return
    _process.hooked = True
    _stack.show_on_request()
    atexit.register(_at_exit)
    sys.excepthook = _reporting(sys.excepthook)
    sys.exit = _noting_status(sys.exit)


def _at_exit() -> None:
    if _process.world is None or _process.released or _process.pid != os.getpid():
        return
    if _process.failed:
        from horovod.common import ops

        ops.keep_buffers_in_flight()
        return
    try:
        shutdown()
    except HorovodInternalError as error:
        print("Horovod could not leave the job in good order: {}".format(error), file=sys.stderr)


def _caused_by_peer(error: Optional[BaseException]) -> bool:
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, HorovodInternalError) and error.caused_by_peer:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def report(error: BaseException) -> None:
    """Tells the daemon what is about to end this process. Does nothing in one that never called
    init."""
    if _process.pid == os.getpid():
        _process.failed = True
        text = "{}: {}".format(type(error).__name__, error)
        _ffi.report_failure(text.splitlines()[0], _caused_by_peer(error))


def _reporting(previous):
    """An excepthook that reports what ends this process, and goes on with the one there was, or, in
    place of Python's own, shows what a user can do something about."""

    def excepthook(kind, value, traceback):
        report(value)
        if previous is not sys.__excepthook__ or value is None or sys.stderr is None:
            previous(kind, value, traceback)
        elif _caused_by_peer(value):
            print(_tracebacks.in_a_line(value), file=sys.stderr)
        else:
            print(_tracebacks.folded(value), file=sys.stderr, end="")

    return excepthook


def _noting_status(previous):
    """A sys.exit that remembers whether the status means failure: atexit functions are not told
    it."""

    def exit(status=None, /):  # noqa: A001 - takes the place of sys.exit
        if _process.pid == os.getpid():
            _process.failed = status not in (None, 0, False)
        previous(status)

    return exit
