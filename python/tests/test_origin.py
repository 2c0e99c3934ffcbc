"""hvd.init() in processes that other launchers have started. Runs in one process."""

import os
import subprocess
import sys

import pytest

from horovod.common._origin import complaint

REFUSED = {
    "torchrun": dict(RANK="1", LOCAL_RANK="1", WORLD_SIZE="2", MASTER_ADDR="localhost"),
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


@pytest.mark.parametrize("launcher", REFUSED)
def test_one_of_several_is_refused_in_a_line_that_says_what_to_do(launcher):
    text = complaint(REFUSED[launcher])
    assert launcher.split(" of ")[0] in text and "horovodrun -np" in text and "\n" not in text


@pytest.mark.parametrize("situation", TAKEN)
def test_one_process_is_taken(situation):
    assert complaint(TAKEN[situation]) is None


def test_workers_of_horovod_are_taken_wherever_the_launcher_was_started():
    for variables in REFUSED.values():
        assert complaint({**variables, "HOROVOD_AGENT_SOCKET": "name"}) is None


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
    assert "this is process 1 of 2 that torchrun has started (RANK=1, WORLD_SIZE=2)" in last
    assert start(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1").stdout == "size 1\n"


def test_ranks_of_another_launcher_are_not_ignored():
    refused = start(HOROVOD_RANK="1", HOROVOD_SIZE="2")
    assert refused.returncode == 1 and refused.stdout == ""
    last = refused.stderr.splitlines()[-1]
    assert "that another launcher has started (HOROVOD_RANK=1, HOROVOD_SIZE=2)" in last
    assert start(HOROVOD_RANK="0", HOROVOD_SIZE="1").stdout == "size 1\n"
