"""hvd.init() in processes that other launchers have started. Runs in one process."""

import os
import subprocess
import sys

import pytest

from horovod.common._ancestors import Ancestor
from horovod.common._origin import complaint, launch_of

TORCHRUN = dict(RANK="1", LOCAL_RANK="1", WORLD_SIZE="2", MASTER_ADDR="localhost")
STEP = dict(SLURM_PROCID="3", SLURM_STEP_NUM_TASKS="8", SLURM_NTASKS="8", SLURM_JOB_ID="17", SLURM_STEP_ID="2")
HYDRA = Ancestor(17, ["/usr/bin/hydra_pmi_proxy", "--control-port", "vm:4711", "--proxy-id", "0"], 99)
RAYLET = [Ancestor(8, ["/ray/raylet", "-x"], 1), Ancestor(7, ["python", "/bin/ray", "start"], 1)]
STEPD = Ancestor(6, ["slurmstepd: [17.2]"], 1)
# What they tell: the launcher, the rank, the size, the name, and whether all are on this machine.
JOINED = {
    "torchrun": (
        dict(
            **TORCHRUN,
            MASTER_PORT="29500",
            TORCHELASTIC_RUN_ID="none",
            TORCHELASTIC_RESTART_COUNT="1",
            LOCAL_WORLD_SIZE="2",
        ),
        ("torchrun", 1, 2, "torchrun-none-localhost-29500-1", True),
    ),
    "torchrun in a step of Slurm": (
        dict(**STEP, **TORCHRUN, MASTER_PORT="4711", TORCHELASTIC_RUN_ID="me", LOCAL_WORLD_SIZE="1"),
        ("torchrun", 1, 2, "torchrun-me-localhost-4711", False),
    ),
    "mpirun": (
        dict(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_SIZE="2", PMIX_NAMESPACE="9"),
        ("mpirun", 0, 2, "mpirun-9", True),
    ),
    "mpirun in a job of Slurm, whose helpers are a step": (
        dict(**STEP, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="9", PMIX_NAMESPACE="9", RANK="0", WORLD_SIZE="9"),
        ("mpirun", 0, 9, "mpirun-9-17-2", False),
    ),
    "mpirun of MPICH in a job of Slurm": (
        dict(**STEP, PMI_RANK="1", PMI_SIZE="4", MPI_LOCALNRANKS="2"),
        ("mpirun", 1, 4, "mpirun-17-2", False),
    ),
    "mpirun of Intel's": (
        dict(PMI_RANK="1", PMI_SIZE="4", MPI_LOCALNRANKS="2", I_MPI_HYDRA_UUID="11-2-3"),
        ("mpirun", 1, 4, "mpirun-11-2-3", False),
    ),
    "mpiexec of PALS": (
        dict(PMI_RANK="1", PMI_SIZE="4", PALS_APID="7-x", PMI_LOCAL_SIZE="4"),
        ("mpirun", 1, 4, "mpirun-7-x", True),
    ),
    "srun": (dict(**STEP, SLURM_STEP_NUM_NODES="2"), ("srun", 3, 8, "srun-17-2", False)),
    "srun with PMI's variables": (
        dict(**STEP, SLURM_STEP_NUM_NODES="1", SLURM_RESTART_COUNT="5", PMI_RANK="3", PMI_SIZE="8"),
        ("srun", 3, 8, "srun-17-2-5", True),
    ),
}
# Nothing tells their launch from others.
REFUSED = {
    "torchrun": TORCHRUN,
    "mpirun": dict(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2"),
    "mpirun of MPICH": dict(PMI_RANK="1", PMI_SIZE="4"),
    "srun": dict(SLURM_PROCID="3", SLURM_STEP_NUM_TASKS="8", SLURM_NTASKS="8"),
    "another launcher": dict(HOROVOD_RANK="1", HOROVOD_SIZE="2", HOROVOD_CONTROLLER="gloo"),
}
TAKEN = {
    "alone": {},
    "torchrun with one": dict(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1"),
    "a size of no launch": dict(WORLD_SIZE="8"),
    "mpirun with one": dict(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="1"),
    # What a batch script and an interactive shell of Slurm have, and what they start.
    "in an allocation": dict(SLURM_NTASKS="8", SLURM_PROCID="0", SLURM_TASKS_PER_NODE="4(x2)"),
    "a step of one task": dict(SLURM_NTASKS="8", SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="1"),
    "another launcher with one": dict(HOROVOD_RANK="0", HOROVOD_SIZE="1"),
    "a worker's child without agent": dict(HOROVOD_RANK="1", HOROVOD_SIZE="2", HOROVOD_WORKER_WORD="word"),
    "such a child in a job of fixed size": dict(RANK="1", LOCAL_RANK="1", WORLD_SIZE="2", HOROVOD_WORKER_WORD="word"),
    "a child with torch's variables only": dict(
        RANK="1", LOCAL_RANK="1", WORLD_SIZE="2", TORCHELASTIC_RUN_ID="horovod-1f"
    ),
    "no number": dict(RANK="one", WORLD_SIZE="two"),
}
# Wrong variables of a Slurm step, and the message about each.
CONTRADICTORY = {
    "a negative rank": (dict(SLURM_PROCID="-1"), "SLURM_PROCID='-1' is none of the ranks 0 to 7 of SLURM_STEP_NUM_T"),
    "a rank beyond the size": (dict(SLURM_PROCID="8"), "SLURM_PROCID='8' is none of the ranks 0 to 7"),
    "a rank that is no number": (dict(SLURM_PROCID="a\n\udcff"), r"SLURM_PROCID='a\n\udcff' is none of the ranks"),
    "a rank of other digits": (dict(SLURM_PROCID="²"), "SLURM_PROCID='²' is none of the ranks"),
    "a rank of too many digits": (dict(SLURM_PROCID="1" * 5000), "111' is none of the ranks"),
    "a negative size": (
        dict(SLURM_STEP_NUM_TASKS="-8"),
        "SLURM_STEP_NUM_TASKS='-8' is not a number of processes up to",
    ),
    "a size that is no number": (dict(SLURM_STEP_NUM_TASKS="8.0"), "SLURM_STEP_NUM_TASKS='8.0' is not a number"),
    "a size that cannot be": (dict(SLURM_STEP_NUM_TASKS="99999999"), "SLURM_STEP_NUM_TASKS='99999999' is not a number"),
    "a size of too many digits": (dict(SLURM_STEP_NUM_TASKS="9" * 5000), "999' is not a number of processes"),
}


def complaint_of(variables):
    return complaint(launch_of(variables), variables, "hvd.init()")


@pytest.mark.parametrize("situation", JOINED)
def test_the_variables_of_a_launch_tell_which_process_this_is(situation):
    variables, told = JOINED[situation]
    assert launch_of(variables)[:5] == told
    assert complaint_of(variables) is None


@pytest.mark.parametrize("launcher", REFUSED)
def test_one_that_cannot_find_the_others_is_refused_in_a_line_that_says_what_to_do(launcher):
    text = complaint_of(REFUSED[launcher])
    assert launcher.split(" of ")[0] in text and "horovodrun -np" in text and "\n" not in text


@pytest.mark.parametrize("situation", CONTRADICTORY)
def test_ranks_and_sizes_that_cannot_be_are_named_in_a_line(situation):
    """Each process would train by itself, or wait for others that never come."""
    variables, told = CONTRADICTORY[situation]
    text = complaint_of({**JOINED["srun"][0], **variables, "HOROVOD_RENDEZVOUS_DIR": "/there"})
    assert told in text and text.isprintable() and len(text) < 300
    assert text.endswith("or alone, without SLURM_STEP_NUM_TASKS")


def test_a_local_rank_stands_for_no_bad_rank():
    torchrun, _ = JOINED["torchrun"]
    assert launch_of({**torchrun, "RANK": "", "LOCAL_RANK": "0"}).rank == 0
    assert "RANK='-1' is none of the ranks 0 to 1" in complaint_of({**torchrun, "RANK": "-1", "LOCAL_RANK": "0"})


@pytest.mark.parametrize("launcher", REFUSED)
def test_a_directory_for_one_launch_is_as_good_as_a_name(launcher):
    refused = complaint_of({**REFUSED[launcher], "HOROVOD_RENDEZVOUS_DIR": "/there"})
    assert (refused is not None) == (launcher == "another launcher")


@pytest.mark.parametrize("situation", TAKEN)
def test_one_process_is_taken(situation):
    assert launch_of(TAKEN[situation]) is None


def test_the_child_of_a_process_of_a_launch_is_alone_without_its_agent():
    variables, _ = JOINED["srun"]
    assert launch_of({**variables, "HOROVOD_JOINED_LAUNCH": "srun-17-2"}) is None
    assert launch_of({**variables, "HOROVOD_JOINED_LAUNCH": "srun-17-1"}) is not None, (
        "another step, which it has started"
    )


@pytest.mark.parametrize(
    "local, proxy, name",
    [
        ("4", HYDRA, "mpirun-vm:4711"),
        ("2", HYDRA, "mpirun-vm:4711"),
        ("4", Ancestor(17, ["hydra_pmi_proxy", "--usize", "-1"], 99), "mpirun-17-99"),
        ("2", Ancestor(17, ["hydra_pmi_proxy", "--usize", "-1"], 99), ""),
        ("2", Ancestor(17, ["/usr/bin/some_proxy", "--control-port", "vm:4711"], 99), ""),
    ],
)
def test_the_helper_of_mpich_tells_its_launch(local, proxy, name):
    variables = dict(PMI_RANK="1", PMI_SIZE="4", MPI_LOCALNRANKS=local)
    launch = launch_of(variables, [Ancestor(18, ["sh"], 99), proxy])
    assert launch[:5] == ("mpirun", 1, 4, name, local == "4")
    assert launch_of({**variables, "HOROVOD_JOINED_LAUNCH": name or "mpirun"}, [proxy]) is None


def test_workers_of_ray_that_srun_started_are_not_tasks():
    variables, _ = JOINED["srun"]
    assert launch_of(variables, [Ancestor(9, ["ray::IDLE"], 1), *RAYLET, STEPD]) is None
    assert launch_of(variables, [Ancestor(9, ["bash"], 1), STEPD, *RAYLET]) is not None, "Ray has started srun"
    assert launch_of(JOINED["mpirun"][0], RAYLET) is not None, "Ray has started mpirun"


def test_workers_of_horovod_are_taken_wherever_the_launcher_was_started():
    for variables in (*REFUSED.values(), *(variables for variables, _ in JOINED.values())):
        assert launch_of({**variables, "HOROVOD_AGENT_SOCKET": "name"}) is None


def start(**variables):
    drop = ("HOROVOD_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_", "PMI_", "SLURM_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    code = "import horovod.torch as hvd; hvd.init(); print('size', hvd.size())"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**own, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_no_world_of_one_is_made_in_silence():
    refused = start(RANK="1", LOCAL_RANK="1", WORLD_SIZE="2")
    assert refused.returncode == 1 and refused.stdout == ""
    last = refused.stderr.splitlines()[-1]
    assert "this is process 1 of 2 that torchrun has started, but its variables do not tell" in last
    assert start(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1").stdout == "size 1\n"


def test_ranks_of_another_launcher_are_not_ignored():
    refused = start(HOROVOD_RANK="1", HOROVOD_SIZE="2")
    assert refused.returncode == 1 and refused.stdout == ""
    last = refused.stderr.splitlines()[-1]
    assert "this is process 1 of 2 that another launcher has started, but" in last and "unset HOROVOD_SIZE" in last
    assert start(HOROVOD_RANK="0", HOROVOD_SIZE="1").stdout == "size 1\n"
