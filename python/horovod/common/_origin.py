"""Who has started this process, and whether it may therefore join a world."""

import os
from collections.abc import Mapping
from typing import NamedTuple, Optional

from horovod.common.exceptions import HorovodInternalError

# Tells the processes that a member of a world starts who that is: its id, and its place in the job.
_MEMBER = "HOROVOD_MEMBER"


class _Launcher(NamedTuple):
    """The variables that a launcher sets for each of its processes, all of them."""

    name: str
    rank: str
    size: str


_TORCHRUN = (_Launcher("torchrun", "RANK", "WORLD_SIZE"), _Launcher("torchrun", "LOCAL_RANK", "WORLD_SIZE"))
# Each pair is set for the processes of one launch, not for a whole allocation: a notebook or one
# process in a batch job of several tasks has none of them, or a size of 1.
_LAUNCHERS = (
    _Launcher("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    _Launcher("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    _Launcher("mpirun", "PMI_RANK", "PMI_SIZE"),
    *_TORCHRUN,
)
# Horovod's own names, as executors of Ray and Spark set them for Horovod 0.28.
_EXECUTOR = _Launcher("another launcher", "HOROVOD_RANK", "HOROVOD_SIZE")
_RUN = "horovod-"  # the beginning of TORCHELASTIC_RUN_ID
_SET_BY_AGENTS = (*_TORCHRUN, _EXECUTOR)


def _number(text: str) -> Optional[int]:
    return int(text) if text.isascii() and text.isdigit() else None


def complaint(environment: Mapping[str, str]) -> Optional[str]:
    """The error message, one line, for a process that another launcher started together with
    others: each would silently train alone. None for a single process and for one of Horovod's."""
    if environment.get("HOROVOD_AGENT_SOCKET"):
        return None
    # A worker's child that dropped the agent's socket, or all of Horovod's variables, to be alone, still has the
    # agent's other variables.
    is_child = environment.get("HOROVOD_WORKER_WORD") or environment.get("TORCHELASTIC_RUN_ID", "").startswith(_RUN)
    of_agent = _SET_BY_AGENTS if is_child else ()
    for launcher in (*_LAUNCHERS, _EXECUTOR):
        if launcher in of_agent:
            continue
        rank = _number(environment.get(launcher.rank, ""))
        size = _number(environment.get(launcher.size, ""))
        if rank is None or size is None or size < 2:
            continue
        return (
            f"hvd.init(): this is process {rank} of {size} that {launcher.name} has started ({launcher.rank}="
            f"{rank}, {launcher.size}={size}), but this version of Horovod is started by horovodrun: "
            f"'horovodrun -np {size} python SCRIPT', with -H HOST:SLOTS,... for several hosts (for {size} "
            f"separate trainings unset {launcher.size})"
        )
    return None


def _place_in_job() -> str:
    """The agent's variables that identify this process's place in the job; empty without an agent."""
    names = ("HOROVOD_AGENT_SOCKET", "HOROVOD_WORKER_ID")
    return " ".join(os.environ[name] for name in names if name in os.environ)


def note_member() -> None:
    """Records in the environment that this process is a member of a world, for the processes it
    starts."""
    if _place_in_job():
        os.environ[_MEMBER] = f"{os.getpid()} {_place_in_job()}"


def forget_member() -> None:
    """Undoes :func:`note_member`."""
    os.environ.pop(_MEMBER, None)


def _check_no_member_started_this() -> None:
    pid, _, place = os.environ.get(_MEMBER, "").partition(" ")
    if not place or place != _place_in_job() or pid == str(os.getpid()):
        return
    if os.path.exists("/proc/" + pid):
        raise HorovodInternalError(
            f"Process {pid} has called hvd.init() and has started this one, which can't be the same "
            "rank. If this one runs the script again, as the workers of a DataLoader do that are "
            "started by spawn or forkserver, call hvd.init() under if __name__ == '__main__'. "
            f"Otherwise call hvd.shutdown() in process {pid} first."
        )


def check() -> None:
    """Raises :class:`HorovodInternalError` if this process must not join: an ancestor is a member
    of the world in the same place, so the world would break; or another launcher started several
    processes."""
    _check_no_member_started_this()
    refusal = complaint(os.environ)
    if refusal is not None:
        raise HorovodInternalError(refusal)
