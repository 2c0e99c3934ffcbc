"""NCCL on a GPU."""

import json
import re
import socket

import pytest


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_operations_are_those_of_the_host(horovodrun, job, ranks):
    result = horovodrun.run("-np", ranks, "python", job("operations.py"), timeout=300)
    assert result.returncode == 0, result.stderr
    assert len(re.findall(r"all as on the host, NCCL \d{5}", result.stdout)) == ranks
    assert "go through host memory" not in result.stderr


def test_operations_run_on_the_device(horovodrun, job, tmp_path):
    timeline = tmp_path / "timeline.json"
    result = horovodrun.run("-np", 2, "--timeline-filename", timeline, "python", job("operations.py"), timeout=300)
    assert result.returncode == 0, result.stderr
    recorded = set(re.findall(r"NCCL_[A-Z]+", timeline.read_text()))
    assert recorded >= {"NCCL_ALLREDUCE", "NCCL_ALLGATHER", "NCCL_BROADCAST", "NCCL_ALLTOALL", "NCCL_REDUCESCATTER"}


def test_ranks_that_share_a_gpu_go_through_the_host(horovodrun):
    script = (
        "import torch, horovod.torch as hvd; hvd.init(); "
        "x = hvd.allreduce(torch.ones(5, device='cuda:0'), op=hvd.Sum); assert (x == hvd.size()).all().item() and x.is_cuda"
    )
    result = horovodrun.run("-np", 2, "python", "-c", script)
    assert result.returncode == 0, result.stderr
    assert "ranks 0 and 1 use the same GPU" in result.stderr


def test_ranks_that_share_a_gpu_are_nccls_own_if_it_is_told_so(horovodrun, nccl_version):
    if nccl_version < 23000:
        pytest.skip("NCCL takes one rank a GPU before 2.30")
    script = (
        "import torch, horovod.torch as hvd; hvd.init(); "
        "x = hvd.allreduce(torch.ones(1 << 20, device='cuda:0'), op=hvd.Sum); assert (x == hvd.size()).all().item() and x.is_cuda"
    )
    result = horovodrun.run("-np", 2, "-x", "NCCL_MULTI_RANK_GPU_ENABLE=1", "python", "-c", script)
    assert result.returncode == 0, result.stderr
    assert "go through host memory" not in result.stderr


def test_gpu_operations_can_be_turned_off(horovodrun, job):
    result = horovodrun.run("-np", 2, "-x", "HOROVOD_GPU_OPERATIONS=HOST", "python", job("operations.py"), timeout=300)
    assert result.returncode == 0, result.stderr


def test_kill_in_the_middle_of_an_allreduce(horovodrun, job, tmp_path):
    for round in range(5):
        result = horovodrun.run(
            "-np",
            3,
            "--min-np",
            2,
            "--max-np",
            3,
            "python",
            job("killed.py"),
            tmp_path / f"killed-{round}",
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        assert "done at 60" in result.stdout


def test_bus_bandwidth_beside_torch(horovodrun, job):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = horovodrun.run("-np", 2, "-x", f"PEER_PORT={port}", "python", job("bandwidth.py"), timeout=300)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line[line.index("{") :]) for line in result.stdout.splitlines() if '"bytes"' in line]
    for row in rows:
        print(row)
    large = rows[-1]
    assert large["ours_GBps"] > 0.8 * large["torch_GBps"], rows
