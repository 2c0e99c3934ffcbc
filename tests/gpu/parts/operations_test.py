"""All operations on all types and sizes, against the CPU's results."""

import re
import sys

import pytest


def check_operations(horovodrun, job, ranks, *arguments):
    result = horovodrun.run("-np", ranks, sys.executable, job("operations.py"), *arguments, timeout=70)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r"all as on the host, NCCL \d{5}", result.stdout)) == ranks
    assert "go through host memory" not in result.stderr


@pytest.mark.parametrize("ranks", [2, 1])
def test_operations_are_those_of_the_host(horovodrun, job, ranks):
    check_operations(horovodrun, job, ranks)


def test_all_sizes_on_the_device(checks, tmp_path):
    timeline = tmp_path / "timeline.json"
    checks("sizes.py", 2, 60, "--timeline-filename", timeline)
    recorded = set(re.findall(r"NCCL_[A-Z]+", timeline.read_text()))
    assert recorded >= {"NCCL_ALLREDUCE", "NCCL_ALLGATHER", "NCCL_BROADCAST", "NCCL_ALLTOALL", "NCCL_REDUCESCATTER"}


SHARED = (
    "import torch, horovod.torch as hvd; hvd.init(); "
    "x = hvd.allreduce(torch.ones(1 << 20, device='cuda:0'), op=hvd.Sum); assert (x == hvd.size()).all().item() and x.is_cuda"
)


def test_ranks_that_share_a_gpu_go_through_the_host(horovodrun):
    result = horovodrun.run("-np", 2, sys.executable, "-c", SHARED, timeout=50)
    assert result.returncode == 0, result.stderr
    assert "ranks 0 and 1 use the same GPU" in result.stderr


def test_ranks_that_share_a_gpu_are_nccls_own_if_it_is_told_so(horovodrun, nccl_version):
    if nccl_version < 23000:
        pytest.skip("NCCL takes one rank a GPU before 2.30")
    result = horovodrun.run("-np", 2, "-x", "NCCL_MULTI_RANK_GPU_ENABLE=1", sys.executable, "-c", SHARED)
    assert result.returncode == 0, result.stderr
    assert "go through host memory" not in result.stderr


def test_four_ranks(horovodrun, job):
    check_operations(horovodrun, job, 4, "few")


def test_all_sizes_on_four_ranks(checks):
    checks("sizes.py", 4, 60)


def test_gpu_operations_can_be_turned_off(horovodrun, job):
    arguments = ("-np", 2, "-x", "HOROVOD_GPU_OPERATIONS=HOST", sys.executable, job("operations.py"), "few")
    result = horovodrun.run(*arguments, timeout=50)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "rank 0 can't use NCCL: HOROVOD_GPU_OPERATIONS=HOST is set there" in result.stderr
