"""The origin of this process: which program has started it, and whether it may therefore join a world."""

import os
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple, Optional

from horovod.common._ancestors import Ancestor, ancestors
from horovod.common.exceptions import HorovodInternalError

# Set for the processes that a member of a world starts: the member's pid, and its place in the job.
_MEMBER = "HOROVOD_MEMBER"
# Set for the processes that a process of a launch starts: the launch that it has joined, so that they do not join it.
_JOINED = "HOROVOD_JOINED_LAUNCH"


class Launch(NamedTuple):
    """This process's place among the processes that a launcher has started together."""

    launcher: str
    rank: int
    size: int
    name: str  # unlike that of any other launch; empty: the launcher gives none
    is_local: bool  # all are on this machine
    root: str  # where rank 0 is, as far as known, for messages
    variable: str  # without it a process is none of the launch's
    problem: str = ""  # why its rank and size can't be
    local_rank: str = ""  # among the processes of this machine; empty: the launcher gives none


class _Launcher(NamedTuple):
    """The variables that a launcher sets for each of its processes. All of them must be set."""

    name: str
    rank: str
    size: str
    names: tuple[str, ...] = ()  # of the launch: all of them together
    more_names: tuple[str, ...] = ()  # those of these that there are
    is_local: tuple[str, str] = ("", "")  # two variables that are equal, or a variable and its value
    root: str = ""
    local_rank: str = ""


# Not a variable: the result of _hydra().
_HYDRA = "hydra_pmi_proxy"
_STEP = ("SLURM_JOB_ID", "SLURM_STEP_ID")
_ATTEMPT = ("SLURM_CLUSTER_NAME", "SLURM_RESTART_COUNT")
_TORCHRUN = _Launcher(
    "torchrun",
    "RANK",
    "WORLD_SIZE",
    ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    ("TORCHELASTIC_RESTART_COUNT",),
    ("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
    "MASTER_ADDR",
)
_SRUN = _Launcher(
    "srun",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    _STEP,
    _ATTEMPT,
    ("SLURM_STEP_NUM_NODES", "1"),
    "SLURM_STEP_NODELIST",
    "SLURM_LOCALID",
)


def _of_pmi(
    names: tuple[str, ...],
    more_names: tuple[str, ...] = (),
    local_size: str = "MPI_LOCALNRANKS",
    local_rank: str = "MPI_LOCALRANKID",
) -> _Launcher:
    """Returns an mpirun whose processes have the variables of MPI's process management interface."""
    return _Launcher(
        "mpirun", "PMI_RANK", "PMI_SIZE", names, more_names, (local_size, "PMI_SIZE"), local_rank=local_rank
    )


# Each pair is set for the processes of one launch, not for a whole allocation: a notebook or one
# process in a batch job of several tasks has none of them, or a size of 1. A launcher that another
# one starts comes first: torchrun is started by srun, and MPICH's mpirun starts its helpers with it.
_LAUNCHERS = (
    _TORCHRUN,
    _Launcher(
        "mpirun",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        ("PMIX_NAMESPACE",),
        ("OMPI_MCA_orte_hnp_uri", *_STEP, *_ATTEMPT),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
        local_rank="OMPI_COMM_WORLD_LOCAL_RANK",
    ),
    _of_pmi(("I_MPI_HYDRA_UUID",)),
    _of_pmi((_HYDRA,)),
    _of_pmi(("PALS_APID",), (), "PMI_LOCAL_SIZE", "PMI_LOCAL_RANK"),
    _of_pmi(_STEP, _ATTEMPT),
    _SRUN,
)
# Horovod's own names, as executors of Ray and Spark set them for Horovod 0.28.
_EXECUTOR = _Launcher("another launcher", "HOROVOD_RANK", "HOROVOD_SIZE")
_PMI_OF_SLURM = (("PMI_RANK", "SLURM_PROCID"), ("PMI_SIZE", "SLURM_STEP_NUM_TASKS"))
_RUN = "horovod-"  # the beginning of TORCHELASTIC_RUN_ID
_SET_BY_AGENTS = (_TORCHRUN.name, _EXECUTOR.name)

RENDEZVOUS_DIR = "HOROVOD_RENDEZVOUS_DIR"


# Far more than any launch has; the greatest that horovod-rendezvousd takes.
_MOST = 1 << 20


def _number(text: str) -> Optional[int]:
    """Returns the number in `text`, or None if it is not a number. Python converts only numbers of limited length; longer ones
    become at most 10 * _MOST.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    return 10 * _MOST if len(text.lstrip("0")) > len(str(_MOST)) else int(text[-len(str(_MOST)) :])


def _problem_of(rank: Optional[int], size: Optional[int], said: tuple[str, str], launcher: _Launcher) -> str:
    """Returns why rank and size are invalid; `said` names their variables."""
    rank_said, size_said = (f"{text[:40]!r}" for text in said)
    if size is None or size > _MOST:
        return f"{launcher.size}={size_said} is not a number of processes up to {_MOST}"
    if rank is None or rank >= size:
        return f"{launcher.rank}={rank_said} is none of the ranks 0 to {size - 1} of {launcher.size}={size_said}"
    return ""


def _launch_by(launcher: _Launcher, environment: Mapping[str, str]) -> Optional[Launch]:
    said = environment.get(launcher.rank, ""), environment.get(launcher.size, "")
    if not said[0] and launcher is _TORCHRUN:
        said = environment.get("LOCAL_RANK", ""), said[1]
    rank, size = _number(said[0]), _number(said[1])
    # Where neither is a number, they are something else's.
    if "" in said or (rank is None and size is None) or (size is not None and size < 2):
        return None
    names = [environment.get(name, "") for name in launcher.names]
    more = [environment[name] for name in launcher.more_names if environment.get(name)]
    name = "-".join([launcher.name, *names, *more]) if names and all(names) else ""
    one, other = launcher.is_local
    is_local = one in environment and environment[one] == environment.get(other, other)
    root = environment.get(launcher.root, "")
    problem = _problem_of(rank, size, said, launcher)
    local_rank = environment.get(launcher.local_rank, "")
    return Launch(launcher.name, rank or 0, size or 0, name, is_local, root, launcher.size, problem, local_rank)


def _hydra(environment: Mapping[str, str], above: Iterable[Ancestor]) -> dict[str, str]:
    """Returns what the nearest helper of MPICH's mpirun shows of the launch, in its command line. The variables of its processes
    are not sufficient. A question to the helper would have side effects: it takes a process that has asked for one of MPI,
    and its end for a failure.
    """
    proxy = next((each for each in above if each.program == _HYDRA), None)
    if proxy is None:
        return {}
    name = proxy.option("--control-port")  # mpirun's own HOST:PORT, the same on all machines
    if not name and environment.get("MPI_LOCALNRANKS") == environment.get("PMI_SIZE"):
        name = f"{proxy.pid}-{proxy.started}"
    return {_HYDRA: name}


def _is_in_ray(above: Iterable[Ancestor]) -> bool:
    """Returns whether this process belongs to Ray, which srun has started: it has the variables of a task, but is not one."""
    return any(each.program == "raylet" for each in takewhile(lambda each: each.program != "slurmstepd", above))


def launch_of(environment: Mapping[str, str], above: Iterable[Ancestor] = ()) -> Optional[Launch]:
    """Returns this process's place among several processes that a launcher other than Horovod's has started together. None if
    it is a single process, or one of Horovod's. `above`: its ancestors.
    """
    if environment.get("HOROVOD_AGENT_SOCKET"):
        return None
    # A worker's child that dropped the agent's socket, or all of Horovod's variables, to be alone, still has the
    # agent's other variables.
    is_child = environment.get("HOROVOD_WORKER_WORD") or environment.get("TORCHELASTIC_RUN_ID", "").startswith(_RUN)
    above = list(above)
    environment = {**environment, **_hydra(environment, above)}
    # srun may set PMI's variables, too: the same.
    pmi_is_srun = all(environment.get(pmi) == environment.get(slurm) for pmi, slurm in _PMI_OF_SLURM)
    named = unnamed = None
    for launcher in (*_LAUNCHERS, _EXECUTOR):
        if (is_child and launcher.name in _SET_BY_AGENTS) or (pmi_is_srun and launcher.rank == "PMI_RANK"):
            continue
        launch = _launch_by(launcher, environment)
        if launch is not None and launch.name:
            named = launch
            break
        unnamed = unnamed or launch
    launch = named or unnamed
    if launch is not None and launch.launcher == _SRUN.name and _is_in_ray(above):
        return None
    return None if launch is None or _label(launch) == environment.get(_JOINED) else launch


def _label(launch: Launch) -> str:
    return launch.name or launch.launcher


def note_launch(launch: Launch) -> None:
    """Records in the environment that this process has joined `launch`, for the processes it starts."""
    os.environ[_JOINED] = _label(launch)


def complaint(launch: Launch, environment: Mapping[str, str], call: str) -> Optional[str]:
    """Returns a one-line error message for a process that can't find the others of its launch; None for one that can. `call` is
    what the script has called.
    """
    if launch.problem:
        return (
            f"{call}: {launch.problem}: start this process with the variables of {launch.launcher} as they are, "
            f"or alone, without {launch.variable}"
        )
    if launch.name or (launch.launcher != _EXECUTOR.name and environment.get(RENDEZVOUS_DIR)):
        return None
    start = (
        f"{call}: this is process {launch.rank} of {launch.size} that {launch.launcher} has started, but its "
        "variables do not tell this launch from others, so the processes can't find each other: start them with "
        f"'horovodrun -np {launch.size} python SCRIPT', with -H HOST:SLOTS,... for several hosts"
    )
    if launch.launcher == _EXECUTOR.name:
        return f"{start} (for {launch.size} separate trainings unset HOROVOD_SIZE)"
    return f"{start}, or set {RENDEZVOUS_DIR} to an empty directory of theirs alone"


def _place_in_job() -> str:
    """Returns the agent's variables that identify this process's place in the job; empty without an agent."""
    names = ("HOROVOD_AGENT_SOCKET", "HOROVOD_WORKER_ID")
    return " ".join(os.environ[name] for name in names if name in os.environ)


def note_member() -> None:
    """Records in the environment, for the processes that this process starts, that it is a member of a world."""
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


def check(call: str) -> Optional[Launch]:
    """Returns the launch to join, if a launcher other than Horovod's has started several processes; else None. `call` is what
    the script has called, for messages.

    Raises :class:`HorovodInternalError` if this process must not join: an ancestor is a member of the world in the same
    place, so that the world would break, or the others of its launch can't be found.
    """
    _check_no_member_started_this()
    launch = launch_of(os.environ, ancestors())
    refusal = None if launch is None else complaint(launch, os.environ, call)
    if refusal is not None:
        raise HorovodInternalError(refusal)
    return launch
