"""Ranks whose kernels run at the same time on one GPU, by NVIDIA's Multi-Process Service: without it they take turns of about 2 ms."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from conftest import group_figures, numbers

CONTROL = shutil.which("nvidia-cuda-mps-control") or shutil.which(
    "nvidia-cuda-mps-control", path="/usr/local/nvidia/bin"
)


@pytest.fixture(scope="module")
def mps():
    """The variables of a process that uses a service of this test's own."""
    if CONTROL is None:
        pytest.skip("nvidia-cuda-mps-control is not installed")
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:  # a short path, for its sockets
        variables = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
        for path in variables.values():
            os.mkdir(path)
        environment = {**os.environ, **variables}
        daemon = subprocess.Popen([CONTROL, "-f"], env=environment, stdin=subprocess.DEVNULL)
        try:
            await_socket(daemon, Path(folder) / "pipe/control")
            yield variables
            subprocess.run([CONTROL], input=b"quit\n", env=environment, timeout=20, stdout=subprocess.DEVNULL)
            daemon.wait(20)
        finally:
            daemon.kill()
            daemon.wait()
            for log in sorted(Path(folder, "log").glob("*.log")):
                print(log.name, log.read_text()[-2000:])


def await_socket(daemon, path):
    deadline = time.monotonic() + 20
    while not path.exists():
        assert daemon.poll() is None, "nvidia-cuda-mps-control has ended"
        assert time.monotonic() < deadline, f"nvidia-cuda-mps-control has not made {path}"
        time.sleep(0.01)


@pytest.fixture
def ways(mps, nccl_version):
    """Variables of the jobs, by how NCCL connects the ranks: over sockets, as if of two hosts; or as ranks of one GPU, if it can."""
    found = {"sockets": mps}
    if nccl_version >= 23000:
        found["one GPU"] = {**mps, "ONE_HOST": "1", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}
    return found


def test_operations_are_those_of_the_host(horovodrun, job, ways):
    for name, variables in ways.items():
        result = horovodrun.run("-np", 2, sys.executable, job("operations.py"), "few", env=variables, timeout=40)
        assert result.returncode == 0, name + result.stdout + result.stderr
        assert "go through host memory" not in result.stderr


def test_bus_bandwidth_beside_torch(horovodrun, job, figure, ways, tmp_path):
    for name, variables in ways.items():
        environment = {**variables, "PEER_STORE": str(tmp_path / f"store of {name}")}
        result = horovodrun.run("-np", 2, sys.executable, job("bandwidth.py"), env=environment, timeout=40)
        assert result.returncode == 0, result.stdout + result.stderr
        for row in numbers(result.stdout):
            figure(f"MPS, {name}: allreduce of {row['bytes']} B: ours", row["ours_us"], "us")
            figure(f"MPS, {name}: allreduce of {row['bytes']} B: torch's time over ours", row.get("ratio"), "", "1.0")


def test_ways_to_reduce_many_tensors(horovodrun, job, figure, ways):
    for name, variables in ways.items():
        result = horovodrun.run("-np", 2, sys.executable, job("grouping.py"), env=variables, timeout=40)
        assert result.returncode == 0, result.stdout + result.stderr
        group_figures(figure, f"MPS, {name}", numbers(result.stdout))


def test_new_worlds(horovodrun, job, figure, ways):
    for name, variables in ways.items():
        result = horovodrun.run("-np", 2, sys.executable, job("new_worlds.py"), env=variables, timeout=40)
        assert result.returncode == 0, result.stdout + result.stderr
        for what, taken in numbers(result.stdout)[0].items():
            figure(f"MPS, {name}: a new world: {what}", taken, "ms")
