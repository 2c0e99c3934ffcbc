"""Functions for joining and leaving worlds, queries of the world, and process sets."""

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Optional

from horovod._ffi._library import check, library
from horovod.common.exceptions import ALREADY_EXISTS, NOT_FOUND


def init() -> None:
    """Joins the next world. Blocks until all members have joined, unless the process is deferred."""
    check(library.hvd_init())


def is_deferred() -> bool:
    """Returns whether :func:`init` gave this process only provisional ranks, because the other processes are training."""
    return bool(library.hvd_is_deferred())


def join_world() -> None:
    """Makes a deferred process a member of the next world. Blocks until that world is up."""
    check(library.hvd_join_world())


_join: object = None  # the library calls it as long as the process lives


def set_join(join: Callable[[], None]) -> None:
    """Sets, once in a process, what the library calls when a deferred process submits its first operation without Python's knowledge, from a graph of
    TensorFlow, on that thread. It calls :func:`join_world` and raises nothing.
    """
    global _join
    if _join is None:
        _join = ctypes.CFUNCTYPE(None)(join)
        library.hvd_set_join(_join)


def takes_device(device: int) -> bool:
    """Returns whether requests may be for arrays on this CUDA device. A process has one such device, the first that any framework asks
    for.
    """
    return bool(library.hvd_takes_device(device))


def reset() -> None:
    """Leaves the current world, which is broken or about to change, and joins the next one; blocks."""
    check(library.hvd_reset())


def set_commit(number: int) -> None:
    """Reports the commit that this process can restore; 0: none. The process with the newest commit becomes rank 0 of the next
    world.
    """
    library.hvd_set_commit(number)


def begin_training() -> None:
    """Marks the end of the preparations: time from now on counts as the script's work."""
    library.hvd_begin_training()


def forget_work() -> None:
    """Says that the operations so far were those of preparations that have failed: they are no progress."""
    library.hvd_forget_work()


def count_step() -> None:
    """Counts a step of the script's optimizer."""
    library.hvd_count_step()


def note_error(message: str, caused_by_peer: bool) -> None:
    """Records the error for which this process is about to leave its world. `caused_by_peer`: it is the loss of a peer."""
    library.hvd_note_error(message.encode("utf-8", "replace"), int(caused_by_peer))


def check_world() -> None:
    """On rank 0 of an elastic job, raises HorovodInternalError if the job has replaced this world, or if the daemon has not
    confirmed the world for too long. Costs nothing while the last confirmation is recent. Raises ValueError in a rehearsal that asks for
    an exception.
    """
    check(library.hvd_check_world())


def confirm_world() -> None:
    """Asks the daemon whether this process's world is the job's newest. Blocks for some seconds at most if there is no answer.
    Raises HorovodInternalError if it is not. Thread-safe.
    """
    check(library.hvd_confirm_world())


def disk_is_full() -> bool:
    """Returns whether a rehearsal (``horovodrun --inject``) wants that no checkpoint can be written now. Thread-safe."""
    return bool(library.hvd_disk_is_full())


def note_checkpoints(commit: int, age: float, place: str, failure: str) -> None:
    """Tells the daemon which checkpoints this process writes. Best effort; takes a second at most. Thread-safe.

    Args:
      commit: the id of the newest one's commit; 0: there is none.
      age: of that commit, in seconds; negative: unknown.
      place: the newest one's path or URL, or the folder's if there is none.
      failure: why the last write failed; "": it did not.
    """
    library.hvd_note_checkpoints(commit, age, place.encode("utf-8", "replace"), failure.encode("utf-8", "replace"))


def must_sync_state() -> bool:
    """Returns whether a member of this world lacks rank 0's state. The same on every rank."""
    return bool(library.hvd_must_sync_state())


def on_corruption() -> int:
    """Returns what the job does about silent data corruption, a number of base/settings/on_corruption.h; 0 without a world. The same on every
    rank.
    """
    policy: int = library.hvd_on_corruption()
    return policy


def shutdown() -> None:
    """Leaves the world cleanly, if there is one."""
    check(library.hvd_shutdown())


def query(what: str) -> int:
    """Returns the number ``hvd_<what>()``; for ranks and sizes -1 if there is no world."""
    number: int = getattr(library, "hvd_" + what)()
    return number


def job_id() -> str:
    """Returns the job's id; "" in a process without an agent, and before :func:`init`."""
    return bytes(library.hvd_job_id()).decode()


def version() -> str:
    """Returns the version of the library."""
    return bytes(library.hvd_version()).decode()


def built(what: str) -> int:
    """Returns whether the library contains the feature `what` ("gloo", "nccl", ...), as a number."""
    answer: int = library.hvd_built(what.encode())
    return answer


def world_is_changing() -> bool:
    """Returns whether the world is broken or about to change. One load, no communication."""
    changing: bool = library.hvd_world_is_changing() != 0
    return changing


def start_timeline(path: str, mark_cycles: bool) -> None:
    """On rank 0, makes all ranks record their operations for the file `path`."""
    check(library.hvd_start_timeline(os.fsencode(path), int(mark_cycles)))


def stop_timeline() -> None:
    """On rank 0, ends the recording; blocks until the file is complete."""
    check(library.hvd_stop_timeline())


def stack_request() -> Optional[tuple[int, int]]:
    """Returns the descriptor to which this process is to write its stack, and the signal that requests it; None if no agent wants
    it.
    """
    fd, signum = ctypes.c_int32(), ctypes.c_int32()
    code = library.hvd_stack_request(ctypes.byref(fd), ctypes.byref(signum))
    if code == NOT_FOUND:
        return None
    check(code)
    return fd.value, signum.value


def report_failure(message: str, caused_by_peer: bool, ends_job: bool = False) -> None:
    """Reports to the daemon why this process is about to fail. Best effort; takes at most a second. `ends_job`: an elastic job ends,
    too.
    """
    library.hvd_report_failure(message.encode("utf-8", "replace"), int(caused_by_peer), int(ends_job))


def add_process_set(ranks: Sequence[int]) -> tuple[int, bool]:
    """Registers a process set, with all other ranks; blocks. Returns its id, and whether it is new; if not, the id is that of the
    set with the same ranks.
    """
    process_set_id = ctypes.c_int32()
    count = len(ranks)
    code = library.hvd_add_process_set((ctypes.c_int32 * count)(*ranks), count, ctypes.byref(process_set_id))
    if code != ALREADY_EXISTS:
        check(code)
    return process_set_id.value, code == 0


def remove_process_set(process_set_id: int) -> None:
    """Removes a process set, with all other ranks; blocks."""
    check(library.hvd_remove_process_set(process_set_id))


def member(rank: int) -> tuple[int, int]:
    """Returns an identifier of the process that is `rank` in the current world; it is the same in any world."""
    worker, incarnation = ctypes.c_uint64(), ctypes.c_uint64()
    check(library.hvd_member(rank, ctypes.byref(worker), ctypes.byref(incarnation)))
    return worker.value, incarnation.value
