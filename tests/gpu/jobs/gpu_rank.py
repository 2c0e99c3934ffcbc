"""What every job of these tests starts with: a rank on the one GPU. NCCL takes each rank for a separate host, unless ONE_HOST is set: then ranks
that share the GPU are staged through host memory."""

import os

if "ONE_HOST" not in os.environ:
    # By the process: a rank of an elastic job may be another's later.
    os.environ["NCCL_HOSTID"] = f"host-of-process-{os.getpid()}"

import torch

import horovod.torch as hvd

hvd.init()
device = torch.device("cuda", hvd.rank() % torch.cuda.device_count())
torch.cuda.set_device(device)
# Results are compared with the CPU's.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False

IS_SIMULATED = "simulated" in torch.cuda.get_device_name(device).lower()
LARGEST_BYTES = (16 << 20) if IS_SIMULATED else (1 << 30)
