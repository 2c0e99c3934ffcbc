"""The state of this process in its world: its ranks, and how it joined. All modules of the package except the C ABI build
on it.
"""

import ctypes
import os
import sys
import threading
import time
from typing import Callable, NamedTuple, Optional

from horovod import _ffi
from horovod.common.exceptions import NOT_INITIALIZED, HorovodInternalError, WorkerReleased

# What scripts may ask; the rest is for the package.
__all__ = [
    "cross_rank",
    "cross_size",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "size",
]

Hook = Callable[[], None]

_join_lock = threading.RLock()


class World(NamedTuple):
    """This process's place in its world."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    is_homogeneous: int


class Process:
    """The state of this process. Ranks are kept here so that forked children can read them too."""

    def __init__(self) -> None:
        self.world: Optional[World] = None
        self.deferred = False  # `world` is provisional
        self.moved = False  # the world gave another place than the provisional one
        self.no_collectives = ""  # why the script may not run any now, although this process could
        self.released = False  # and about to end
        self.pid = 0  # that called init; 0: none did
        self.forked = False  # from the one that called init
        self.hooked = False
        self.uses_run = False  # the script has called a function under hvd.elastic.run
        self.failed = False  # an exception or sys.exit(nonzero) is ending this process
        self.status = 0  # with which it will exit then
        self.blames_peer = False  # it only fails as a consequence of another rank's end
        self.on_init: list[Hook] = []
        self.on_later_world: list[Hook] = []
        self.on_leaving: list[Hook] = []
        self.failure_checks: list[Callable[[], Optional[HorovodInternalError]]] = []


process = Process()


def _note_fork() -> None:
    process.forked = process.pid != 0


os.register_at_fork(after_in_child=_note_fork)


def on_init(hook: Hook) -> None:
    """Registers `hook()` to be called when this process enters a world (init, join, reset), before its ranks are known here."""
    process.on_init.append(hook)


def on_later_world(hook: Hook) -> None:
    """Registers `hook()` to be called when this process has entered a world after its init (join, reset), before anything else
    is done in that world. It may run collectives.
    """
    process.on_later_world.append(hook)


def on_leaving(hook: Hook) -> None:
    """Registers `hook()` to be called before this process leaves a world (shutdown, reset), broken or not. The hook waits for
    operations that a framework still runs without Python's knowledge.
    """
    process.on_leaving.append(hook)


def run_leaving_hooks() -> None:
    """Calls the hooks that were registered with :func:`on_leaving`."""
    for hook in process.on_leaving:
        hook()


def on_end(check: Callable[[], Optional[HorovodInternalError]]) -> None:
    """Registers `check()` to be called before this process leaves its last world. It returns the failure of an operation that
    the script has not seen, or None.
    """
    process.failure_checks.append(check)


def unseen_failure() -> Optional[HorovodInternalError]:
    """Returns the first failure that the checks registered with :func:`on_end` find, after all operations have ended."""
    run_leaving_hooks()
    return next((failure for check in process.failure_checks if (failure := check()) is not None), None)


def note_world() -> None:
    """Reads the ranks and sizes of a world just entered from the runtime."""
    for hook in process.on_init:
        hook()
    process.world = World(*(_ffi.query(field) for field in World._fields))
    if os.environ.get("HOROVOD_ELASTIC") == "1":
        _show_in_environment(process.world)


def _show_in_environment(world: World) -> None:
    """Sets HOROVOD_RANK and the like, which the process was started with, to what they are in this world."""
    for field, value in world._asdict().items():
        name = f"HOROVOD_{field.upper()}"
        if name in os.environ:
            os.environ[name] = str(value)


def enter(call: Hook) -> None:
    """Calls `call`, which enters a world, and records it if the job has released this process."""
    try:
        call()
    except WorkerReleased:
        process.released = True
        raise


def prepare(call: Hook) -> None:
    """Calls `call`, which runs the first collectives of a world just entered. If one fails, the job learns why this process leaves
    the world, and that no work was done in it: it would form such worlds without a pause and without end.
    """
    try:
        call()
    except HorovodInternalError as error:
        _ffi.forget_work()
        _ffi.note_error(str(error), error.caused_by_peer)
        error._lost_world = error.caused_by_peer
        raise


def run_later_world_hooks() -> None:
    """Calls the hooks that were registered with :func:`on_later_world`."""
    for hook in process.on_later_world:
        prepare(hook)


def enter_later_world(call: Hook) -> None:
    """Calls `call`, which enters a world after init, and reads the new ranks."""
    enter(call)
    process.deferred = False
    note_world()


def check_not_forked() -> None:
    """Raises :class:`HorovodInternalError` in a child that was forked after init, which lacks the runtime's threads."""
    if process.forked:
        raise HorovodInternalError(
            "This process was forked after hvd.init(): it can read ranks and sizes, but "
            f"collectives, init() and shutdown() belong to process {process.pid}."
        )


def is_ready() -> bool:
    """Returns whether this process is in a world and can run collectives."""
    return process.world is not None and not (process.deferred or process.forked or process.no_collectives)


def go_on() -> bool:
    """Clears the mark that this process is failing, because its exit was prevented. Returns :func:`is_ready`."""
    process.failed = False
    return is_ready()


def is_deferred() -> bool:
    """Returns whether :func:`init` has given this process only provisional ranks."""
    return process.deferred


def join_world() -> None:
    """Makes a process that :func:`init` has deferred a member of the next world; blocks until that world is up. Ranks and sizes
    may change.

    Does nothing if the process is in a world, or before init. Raises as :func:`basics.reset`; RuntimeError if the script may not
    run collectives now.
    """
    if process.no_collectives:
        raise RuntimeError(process.no_collectives)
    if not process.deferred:
        return
    check_not_forked()
    with _join_lock:  # operations of a graph come on several threads
        if not process.deferred:
            return
        provisional = process.world
        enter_later_world(_ffi.join_world)
        process.moved = process.world != provisional
        run_later_world_hooks()


def join_world_for_graph() -> None:
    """Does what :func:`join_world` does, for an operation that a graph has submitted. Raises nothing: if no world was joined, the
    operation fails with the reason. What a signal handler of the script raises meanwhile is raised when Python goes on.
    """
    try:
        join_world()
    except (Exception, WorkerReleased):
        pass
    except BaseException as error:
        _raise_soon(error)


def _raise_soon(error: BaseException) -> None:
    """Has this thread raise the error once it has left the present call from C, which would drop it."""
    kind, arguments, caller = type(error), error.args, threading.get_ident()
    again = type(kind.__name__, (kind,), {"__init__": lambda self: kind.__init__(self, *arguments)})

    def is_in_call() -> bool:
        frame = sys._current_frames().get(caller)
        while frame is not None and frame.f_code is not join_world_for_graph.__code__:
            frame = frame.f_back
        return frame is not None

    def raise_in_caller() -> None:
        while is_in_call():
            time.sleep(0.001)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(caller), ctypes.py_object(again))

    threading.Thread(target=raise_in_caller, daemon=True).start()


def take_move() -> bool:
    """Returns whether joining the world gave this process other ranks or sizes than init did. Returns True at most once."""
    moved, process.moved = process.moved, False
    return moved


def is_elastic() -> bool:
    """Returns whether this process was started for an elastic job, whose size may change."""
    return os.environ.get("HOROVOD_ELASTIC") == "1"


def is_initialized() -> bool:
    """Returns whether this process is in a world, i.e. between :func:`init` and :func:`shutdown`. A world in which another rank
    has failed counts, although no collective can run in it.

    Example:
      >>> hvd.is_initialized()
      True
    """
    return process.world is not None


def current() -> World:
    """Returns the current world. Raises ValueError before init."""
    world = process.world
    if world is None:
        raise ValueError(NOT_INITIALIZED)
    return world


def rank() -> int:
    """Returns this process's number in the world, from 0 to :func:`size` - 1.

    Raises:
      ValueError: Horovod is not initialized.

    Example:
      >>> hvd.rank()
      0
    """
    return current().rank


def size() -> int:
    """Returns the number of processes in the world.

    Raises:
      ValueError: Horovod is not initialized.

    Example:
      >>> hvd.size()
      1
    """
    return current().size


def local_rank() -> int:
    """Returns this process's number among those of its machine, from 0. It says which GPU the process should use.

    Raises:
      ValueError: Horovod is not initialized.

    Example:
      >>> hvd.local_rank()
      0
    """
    return current().local_rank


def local_size() -> int:
    """Returns the number of the world's processes on this machine.

    Raises:
      ValueError: Horovod is not initialized.

    Example:
      >>> hvd.local_size()
      1
    """
    return current().local_size


def cross_rank() -> int:
    """Returns the number of this machine among the machines that have this local rank, from 0.

    Raises:
      ValueError: Horovod is not initialized.
    """
    return current().cross_rank


def cross_size() -> int:
    """Returns the number of machines that have this local rank.

    Raises:
      ValueError: Horovod is not initialized.
    """
    return current().cross_size


def is_homogeneous() -> bool:
    """Returns whether all machines have the same number of ranks.

    Raises:
      ValueError: Horovod is not initialized.

    Example:
      >>> hvd.is_homogeneous()
      True
    """
    return bool(current().is_homogeneous)
