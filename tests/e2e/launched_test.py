"""Scripts with hvd.init() that mpirun starts, without horovodrun. torchrun_launch_test has torchrun; tests/cluster has srun, and several machines."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from processes import Running, pids_with, wait_until_none

SCRIPT = Path(__file__).resolve().parent / "jobs" / "launched.py"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np"]
HYDRA = ["mpiexec.hydra", "-np"]  # MPICH's mpirun


def places_of(result):
    assert result.returncode == 0, result.stdout + result.stderr
    places = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    return sorted(places, key=lambda place: place["rank"])


def test_processes_of_mpirun_are_one_job(launch):
    places = places_of(launch(*MPIRUN, 3, sys.executable, SCRIPT))
    assert [(place["rank"], place["size"], place["local_rank"], place["local_size"]) for place in places] == [
        (rank, 3, rank, 3) for rank in range(3)
    ]
    assert [place["OMPI_COMM_WORLD_RANK"] for place in places] == ["0", "1", "2"]
    assert {place["total"] for place in places} == {3.0}


def test_processes_of_mpich_are_one_job(launch):
    """They have no variable that tells their launch from others, nor have processes that they start, which are
    alone without the agent of the rank."""
    child = "import horovod.numpy as hvd; hvd.init(); print(f'alone {hvd.size()}\\n', end='')"
    script = (
        "import os, subprocess, sys, horovod.numpy as hvd; hvd.init(); assert hvd.size() == 2\n"
        'del os.environ["HOROVOD_AGENT_SOCKET"]\n'
        f'subprocess.run([sys.executable, "-c", {child!r}], check=True)'
    )
    places = places_of(launch(*HYDRA, 3, sys.executable, SCRIPT, "twice"))
    assert [(place["rank"], place["size"], place["local_rank"]) for place in places] == [(r, 3, r) for r in range(3)]
    result = launch(*HYDRA, 2, sys.executable, "-c", script)
    assert (result.returncode, result.stdout) == (0, "alone 1\n" * 2), result.stderr


def test_a_process_of_mpich_that_fails_ends_the_others(launch):
    result = launch(*HYDRA, 3, sys.executable, SCRIPT, "exit")
    assert result.returncode == 7, result.stdout + result.stderr
    assert len(re.findall(r"HorovodInternalError: .*?rank 1", result.stderr)) == 2, result.stderr


def test_a_process_may_leave_and_join_again(launch):
    assert len(places_of(launch(*MPIRUN, 2, sys.executable, SCRIPT, "twice"))) == 2


@pytest.mark.parametrize("what, code", [("raise", 1), ("exit", 7), ("kill", 128 + signal.SIGKILL)])
def test_a_process_that_fails_ends_the_others(launch, what, code):
    """The launcher's exit code is that of the process that failed first."""
    result = launch(*MPIRUN, 3, sys.executable, SCRIPT, what)
    assert result.returncode == code, result.stdout + result.stderr
    assert len(re.findall(r"HorovodInternalError: .*?rank 1", result.stderr)) == 2, result.stderr


@pytest.fixture
def alone(tmp_path):
    """Starts rank 1 of a launch of mpirun's by itself, with `tmp_path` as the directory; its error."""

    def run(**environment):
        variables = dict(
            OMPI_COMM_WORLD_RANK="1",
            OMPI_COMM_WORLD_SIZE="2",
            PMIX_NAMESPACE="4711",
            HOROVOD_RENDEZVOUS_DIR=str(tmp_path),
        )
        process = Running(
            [sys.executable, SCRIPT], env={**os.environ, **variables, "HOROVOD_START_TIMEOUT": "1", **environment}
        )
        assert process.wait(60) == 1
        return re.search(r"^\S*HorovodInternalError: .*$", process.stderr.text, re.M)[0]

    return run


def test_files_that_others_may_know_or_have_written_are_refused(alone, tmp_path):
    missing = alone()
    path = Path(re.search(r"after 1 s (\S+) is not there", missing)[1])
    assert path.parent == tmp_path and "set HOROVOD_RENDEZVOUS_DIR to a directory that they share" in missing
    assert "a process that is not a rank of mpirun needs to be started without OMPI_COMM_WORLD_SIZE" in missing
    path.write_text("{}")
    path.chmod(0o644)
    assert f"{path} is open to other users (mode 0644)" in alone()
    path.chmod(0o600)
    assert f"{path} does not hold what rank 0 writes" in alone()
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        assert f"{path} belongs to user 65534, not to 0" in alone()
    path.unlink()
    path.symlink_to("/dev/null")
    assert f"{path} is not a file; remove it" in alone()
    path.unlink()
    assert f"HOROVOD_RENDEZVOUS_DIR: there is no directory {path}" in alone(HOROVOD_RENDEZVOUS_DIR=str(path))
    assert f"no directory {path}\\n here" in alone(HOROVOD_RENDEZVOUS_DIR=f"{path}\n")
    for text in ("soon", "-1", "0", "²", "604801", "9" * 5000):
        told = alone(HOROVOD_START_TIMEOUT=text)
        assert f"HOROVOD_START_TIMEOUT: '{text[:40]}' is not a whole number of seconds, as 300, up to a week" in told


def test_a_rank_0_that_stays_alone_says_so_and_leaves_no_file(alone, tmp_path):
    said = alone(OMPI_COMM_WORLD_RANK="0")
    assert "process 0 of mpirun: this process could not join the job: " in said
    assert "(a process that is not a rank of mpirun needs to be started without OMPI_COMM_WORLD_SIZE)" in said
    assert list(tmp_path.iterdir()) == []


def test_processes_whose_sizes_differ_are_refused(tmp_path):
    """A process that is none of rank 0's would wait as long as the others train."""
    script = "import horovod.numpy as hvd; hvd.init(); hvd.barrier()"
    launch = dict(PMIX_NAMESPACE="4713", HOROVOD_RENDEZVOUS_DIR=str(tmp_path), HOROVOD_START_TIMEOUT="60")
    sizes = ["2", "3", "2"]
    ranks = ["0", "2", "1"]
    places = [dict(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=size) for rank, size in zip(ranks, sizes)]
    processes = []
    try:
        for place in places:
            processes.append(Running([sys.executable, "-c", script], env={**os.environ, **launch, **place}))
            if place["OMPI_COMM_WORLD_SIZE"] == "3":
                assert processes[-1].wait(60) == 1
        assert "process 2 of mpirun: OMPI_COMM_WORLD_SIZE is 3 here, and 2 for rank 0" in processes[1].stderr.text
        assert [process.wait(60) for process in processes] == [0, 1, 0]
    finally:
        for process in processes:
            process.end()


@pytest.mark.parametrize("killed", [0, 1])
def test_a_process_that_computes_is_ended_with_the_others(tmp_path, killed):
    """Also under a launcher that lets the others live, and if rank 0 is the one, whose daemon ends with it."""
    script = "import time, horovod.numpy as hvd; hvd.init(); hvd.barrier(); print('up', flush=True); time.sleep(1000)"
    launch = dict(
        OMPI_COMM_WORLD_SIZE="2", PMIX_NAMESPACE="4712", HOROVOD_RENDEZVOUS_DIR=str(tmp_path), OMP_NUM_THREADS="1"
    )
    processes = [
        Running([sys.executable, "-c", script], env={**os.environ, **launch, "OMPI_COMM_WORLD_RANK": str(rank)})
        for rank in (0, 1)
    ]
    try:
        for process in processes:
            process.stdout.wait_for("^up", 60)
        assert list(tmp_path.iterdir()) == [], "the file is there until all have joined"
        processes[killed].signal(signal.SIGKILL)
        assert processes[1 - killed].wait(60) == -signal.SIGTERM
    finally:
        for process in processes:
            process.end()
    assert wait_until_none(lambda: pids_with(f"HOROVOD_RENDEZVOUS_DIR={tmp_path}\0".encode())) == []
