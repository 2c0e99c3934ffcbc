"""What every job of these tests starts with: a rank on the one GPU. NCCL takes each rank for a separate host, unless ONE_HOST is set: then ranks
that share the GPU are staged through host memory."""

import ctypes
import faulthandler
import os

# NCCL must use sockets of this machine, whatever else it finds: ranks on one GPU can't reach each other by NVLink or a network card.
os.environ.update(NCCL_NET="Socket", NCCL_MNNVL_ENABLE="0")
# Its reasons, beside the name of an error.
os.environ.setdefault("NCCL_DEBUG", "WARN")
if "ONE_HOST" not in os.environ:
    # By the process: a rank of an elastic job may be another's later.
    os.environ["NCCL_HOSTID"] = f"host-of-process-{os.getpid()}"

import torch

import horovod.torch as hvd

# Of a rank that dies or hangs, the output has where it was.
faulthandler.enable()
faulthandler.dump_traceback_later(40)
hvd.init()
device = torch.device("cuda", hvd.rank() % torch.cuda.device_count())
torch.cuda.set_device(device)
# Results are compared with the CPU's.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False

IS_SIMULATED = "simulated" in torch.cuda.get_device_name(device).lower()
# Ranks on one GPU take turns, and none moves data in the others' turns.
LARGEST_BYTES = (16 << 20) if IS_SIMULATED else (1 << 30) if hvd.size() <= 2 else (256 << 20)


def bus_copies():
    """Returns how many copies between the host and a device this process has asked for; 0 on a real GPU, which does not count them."""
    if not IS_SIMULATED:
        return 0
    driver = ctypes.CDLL("libcuda.so.1")
    driver.simulatedGpuBusCopies.restype = ctypes.c_longlong
    return driver.simulatedGpuBusCopies()
