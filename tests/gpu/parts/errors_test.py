"""Wrong use and full memory."""

import sys

import pytest


def test_wrong_use(checks):
    checks("wrong_use.py", 2, 60)


def test_result_that_does_not_fit(horovodrun, job, leaves_no_memory):
    result = horovodrun.run("-np", 2, sys.executable, job("memory_full.py"), timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    refusals = [line for line in result.stdout.splitlines() if "refused: " in line]
    assert len(refusals) == 2 and all("memory" in line for line in refusals), result.stdout


def test_nccl_only_refuses_ranks_that_share_a_gpu(horovodrun):
    script = "import torch, horovod.torch as hvd; hvd.init(); hvd.allreduce(torch.ones(5, device='cuda:0'))"
    result = horovodrun.run(
        "-np", 2, "-x", "HOROVOD_GPU_OPERATIONS=NCCL_ONLY", sys.executable, "-c", script, timeout=60
    )
    assert result.returncode != 0
    assert "ranks 0 and 1 use the same GPU" in result.stderr


def two_gpus(is_simulated):
    """The arguments of a job with two GPUs."""
    import torch

    if is_simulated:
        return "-x", "SIMULATED_GPU_COUNT=2"
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return ()


def test_wrong_use_of_two_gpus(checks, is_simulated):
    checks("wrong_use.py", 2, 60, *two_gpus(is_simulated))


def test_ranks_that_choose_no_gpu_get_advice(horovodrun, is_simulated):
    script = (
        "import torch, horovod.torch as hvd; hvd.init(); x = hvd.allreduce(torch.ones(5, device='cuda'), op=hvd.Sum); "
        "assert (x == 2).all().item()"
    )
    result = horovodrun.run("-np", 2, *two_gpus(is_simulated), sys.executable, "-c", script, timeout=60)
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stderr.splitlines() if "use the same GPU" in line]
    assert "rank 1 sees 2: torch.cuda.set_device(hvd.local_rank())" in line
