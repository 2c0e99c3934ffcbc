"""Wrong use and full memory."""

import sys


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
