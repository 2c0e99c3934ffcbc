"""The result of an allgather does not fit into the GPU's memory: each rank gets an error, which it prints."""

import torch

from gpu_rank import IS_SIMULATED, device, hvd


def fill_memory():
    """Takes all of the GPU's memory but a little, and returns it in blocks."""
    blocks, size = [], (64 << 20) if IS_SIMULATED else (1 << 30)
    while size >= 16 << 20:
        try:
            blocks.append(torch.empty(size, dtype=torch.uint8, device=device))
        except torch.cuda.OutOfMemoryError:
            size //= 2
    return blocks


own = torch.ones(48 << 20, dtype=torch.uint8, device=device)
hvd.allreduce(torch.ones(1, device=device))  # makes the communicator
blocks = fill_memory()
hvd.barrier()
try:
    hvd.allgather(own)
except hvd.HorovodInternalError as error:
    print("refused:", error, flush=True)
else:
    raise AssertionError("the result can't have fitted")
