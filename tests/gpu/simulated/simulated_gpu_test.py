"""Tests of the simulation itself: what a program on a real GPU could see going wrong, it sees here."""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "support"))

import build
from processes import Running

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def folder():
    return build.build()


@pytest.fixture
def start(folder, tmp_path):
    """Starts a job of jobs/ with the GPU, which only this test uses."""
    started = []

    def run(job, *arguments, **variables):
        environment = {**os.environ, **build.environment(folder, tmp_path), **variables}
        command = [sys.executable, HERE / "jobs" / job, *arguments]
        started.append(Running(list(map(str, command)), env=environment))
        return started[-1]

    yield run
    for job in started:
        job.end()


@pytest.fixture
def passes(start):
    def run(*arguments, **variables):
        job = start(*arguments, **variables)
        assert job.wait(90) == 0, job.everything()

    return run


def unique_id(folder):
    """A unique id, in hexadecimal digits."""
    nccl = ctypes.CDLL(str(folder / "lib" / "libnccl.so.2"))
    made = ctypes.create_string_buffer(128)
    assert nccl.ncclGetUniqueId(made) == 0
    return made.raw.hex()


@pytest.fixture
def ranks(start, folder):
    """Starts the ranks of a communicator."""

    def run(size, what, **variables):
        own = unique_id(folder)
        return [start("rank.py", what, own, rank, size, NCCL_HOSTID=str(rank), **variables) for rank in range(size)]

    return run


@pytest.mark.parametrize(
    "what",
    [
        "ordering",
        "events",
        "host_copies",
        "memory",
        "out_of_memory",
        "host_can_not_touch",
        "random",
        "fork",
        "exchanges",
        "files",
        "operation_without_a_kernel",
    ],
)
def test_torch(passes, what):
    passes("device.py", what)


def test_two_devices(passes):
    passes("device.py", "two_devices", SIMULATED_GPU_COUNT="2")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_all_operations_of_nccl(ranks, size):
    for job in ranks(size, "operations"):
        assert job.wait(90) == 0, job.everything()


def test_a_killed_peer_is_an_error(ranks):
    survivor, victim = ranks(2, "wait_for_peer")
    victim.stdout.wait_for("connected", 60)
    victim.signal(signal.SIGKILL)
    survivor.stdout.wait_for("error 6", 60)
    assert survivor.wait(60) == 0, survivor.everything()


def test_a_stopped_peer_is_waited_for_until_an_abort(ranks):
    survivor, victim = ranks(2, "wait_for_peer")
    victim.stdout.wait_for("connected", 60)
    victim.signal(signal.SIGSTOP)
    survivor.stdout.wait_for("waits", 60)
    survivor.signal(signal.SIGUSR1)
    assert survivor.wait(60) == 0, survivor.everything()
    assert "error" not in survivor.stdout.text and "aborted" in survivor.stdout.text


@pytest.mark.parametrize("variables, answer", [({}, 5), ({"NCCL_MULTI_RANK_GPU_ENABLE": "1"}, 0)])
def test_ranks_of_one_gpu(start, folder, variables, answer):
    own = unique_id(folder)
    jobs = [start("rank.py", "connect", own, rank, 2, NCCL_HOSTID="same", **variables) for rank in range(2)]
    for job in jobs:
        job.stdout.wait_for(f"answer {answer}", 60)


def test_memory_of_dead_processes_is_free(start, folder, tmp_path):
    holders = [start("device.py", "hold") for _ in range(2)]  # two: the process that looks may get the entry of one
    for holder in holders:
        holder.stdout.wait_for("holds", 60)

    def free():
        environment = {**os.environ, **build.environment(folder, tmp_path)}
        command = [sys.executable, "-c", "import torch; print(*torch.cuda.mem_get_info())"]
        return [int(number) for number in subprocess.check_output(command, env=environment).split()]

    before, total = free()
    assert before <= total - (128 << 20)
    for holder in holders:
        holder.signal(signal.SIGKILL)
        holder.wait(60)
    assert free() == [total, total]
