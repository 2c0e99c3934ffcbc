"""The life of this process in its worlds: joining, leaving, what it knows, process sets."""

import ctypes
import os
from collections.abc import Sequence
from typing import Optional

from horovod._ffi._library import check, library
from horovod.common.exceptions import ALREADY_EXISTS, NOT_FOUND


def init() -> None:
    """Joins the next world. Blocks until all members are there, unless the process is deferred."""
    check(library.hvd_init())


def is_deferred() -> bool:
    """Whether :func:`init` gave this process only a provisional place: the others are training."""
    return bool(library.hvd_is_deferred())


def join_world() -> None:
    """Makes a deferred process a member of the next world. Blocks until that is up."""
    check(library.hvd_join_world())


def takes_device_tensors() -> bool:
    """Whether requests may be of CUDA tensors."""
    return bool(library.hvd_takes_device_tensors())


def reset() -> None:
    """Leaves the present world, which is broken or about to change, for the next one; blocks."""
    check(library.hvd_reset())


def set_commit(number: int) -> None:
    """Reports the commit that this process can restore, 0 for none. The process with the newest
    commit becomes rank 0 of the next world."""
    library.hvd_set_commit(number)


def begin_training() -> None:
    """Marks the end of the preparations: from now on the time counts as the script's work."""
    library.hvd_begin_training()


def count_step() -> None:
    """Counts a step of the script's optimizer."""
    library.hvd_count_step()


def note_error(message: str) -> None:
    """Reports the local error for which this process is about to leave its world."""
    library.hvd_note_error(message.encode("utf-8", "replace"))


def check_world() -> None:
    """On rank 0 of an elastic job: raises HorovodInternalError if the job has replaced this world,
    or if the daemon has not confirmed it for too long. Free while the last confirmation is recent."""
    check(library.hvd_check_world())


def confirm_world() -> None:
    """Asks the daemon whether this process's world is the job's newest; blocks for some seconds at
    most while there is no answer. Raises HorovodInternalError if it is not. Thread-safe."""
    check(library.hvd_confirm_world())


def must_sync_state() -> bool:
    """Whether some member of this world lacks rank 0's state. The same on every rank."""
    return bool(library.hvd_must_sync_state())


def shutdown() -> None:
    """Leaves the world in good order, if there is one."""
    check(library.hvd_shutdown())


def query(what: str) -> int:
    """``hvd_<what>()``: a number; -1 if there is no world (ranks and sizes)."""
    number: int = getattr(library, "hvd_" + what)()
    return number


def job_id() -> str:
    """The job's id; "" in a process that no agent has started, and before :func:`init`."""
    return bytes(library.hvd_job_id()).decode()


def version() -> str:
    """The version of the library."""
    return bytes(library.hvd_version()).decode()


def built(what: str) -> int:
    """Whether the library can do `what` ("gloo", "nccl", ...)."""
    answer: int = library.hvd_built(what.encode())
    return answer


def world_is_changing() -> bool:
    """Whether the epoch is broken or about to change. One load, no communication."""
    changing: bool = library.hvd_world_is_changing() != 0
    return changing


def start_timeline(path: str, mark_cycles: bool) -> None:
    """On rank 0: makes all ranks record what they do, for the file `path`."""
    check(library.hvd_start_timeline(os.fsencode(path), int(mark_cycles)))


def stop_timeline() -> None:
    """On rank 0: ends the recording; blocks until the file is complete."""
    check(library.hvd_stop_timeline())


def stack_request() -> Optional[tuple[int, int]]:
    """The descriptor that this process is to write its stack to, and the signal on which; None if
    nobody wants it."""
    fd, signum = ctypes.c_int32(), ctypes.c_int32()
    code = library.hvd_stack_request(ctypes.byref(fd), ctypes.byref(signum))
    if code == NOT_FOUND:
        return None
    check(code)
    return fd.value, signum.value


def report_failure(message: str, caused_by_peer: bool) -> None:
    """Tells the daemon why this process is about to fail. Best effort; takes at most a second."""
    library.hvd_report_failure(message.encode("utf-8", "replace"), int(caused_by_peer))


def add_process_set(ranks: Sequence[int]) -> tuple[int, bool]:
    """Registers a process set, with all other ranks; blocks. Its id, and whether it is new: if not,
    that of the set that has these ranks."""
    process_set_id = ctypes.c_int32()
    count = len(ranks)
    code = library.hvd_add_process_set((ctypes.c_int32 * count)(*ranks), count, ctypes.byref(process_set_id))
    if code != ALREADY_EXISTS:
        check(code)
    return process_set_id.value, code == 0


def remove_process_set(process_set_id: int) -> None:
    """Ends a process set, with all other ranks; blocks."""
    check(library.hvd_remove_process_set(process_set_id))


def member(rank: int) -> tuple[int, int]:
    """Which process `rank` of the present world is, the same in any world."""
    worker, incarnation = ctypes.c_uint64(), ctypes.c_uint64()
    check(library.hvd_member(rank, ctypes.byref(worker), ctypes.byref(incarnation)))
    return worker.value, incarnation.value
