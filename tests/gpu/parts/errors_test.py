"""Wrong use and full memory."""

import sys


def test_wrong_use(checks):
    checks("wrong_use.py", 2, 60)


def test_nccl_only_refuses_ranks_that_share_a_gpu(horovodrun):
    script = "import torch, horovod.torch as hvd; hvd.init(); hvd.allreduce(torch.ones(5, device='cuda:0'))"
    result = horovodrun.run(
        "-np", 2, "-x", "HOROVOD_GPU_OPERATIONS=NCCL_ONLY", sys.executable, "-c", script, timeout=60
    )
    assert result.returncode != 0
    assert "ranks 0 and 1 use the same GPU" in result.stderr
