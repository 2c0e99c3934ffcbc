"""Allreduce through host memory beside the limit of the bus, in turns. Rank 0 prints a JSON line for each size.

The limit: all ranks copy as many bytes from the GPU to pinned host memory, and as many back, both at once. GB/s count the tensor's bytes once."""

import json
import statistics
import time

import torch

from gpu_rank import IS_SIMULATED, device, hvd

SIZES = (1 << 20, 8 << 20) if IS_SIMULATED else (16 << 20, 64 << 20, 256 << 20)
WARM, TURNS = 3, 10
down, up = torch.cuda.Stream(), torch.cuda.Stream()


def seconds(operation):
    torch.cuda.synchronize()
    hvd.barrier()
    start = time.perf_counter()
    operation()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def both_directions(data, received, sent):
    with torch.cuda.stream(down):
        received.copy_(data, non_blocking=True)
    with torch.cuda.stream(up):
        data.copy_(sent, non_blocking=True)


def ways_of(size):
    data, copied = (torch.ones(size // 4, device=device) for _ in range(2))
    pinned = [torch.ones(size // 4, pin_memory=True) for _ in range(2)]
    return {
        "limit": lambda: both_directions(copied, *pinned),
        "ours": lambda: hvd.allreduce_(data, op=hvd.Max, name=f"size {size}"),
    }


for size in SIZES:
    ways = ways_of(size)
    times = {name: [] for name in ways}
    for turn in range(WARM + TURNS):
        for name, operation in ways.items():
            taken = seconds(operation)
            if turn >= WARM:
                times[name].append(taken)
    medians = torch.tensor([statistics.median(each) for each in times.values()])
    limit, ours = hvd.allreduce(medians, op=hvd.Max).tolist()  # of the slowest rank
    if hvd.rank() == 0:
        row = {"bytes": size, "limit_GBps": round(size / limit / 1e9, 2), "ours_GBps": round(size / ours / 1e9, 2)}
        print(json.dumps({**row, "share": round(limit / ours, 2)}), flush=True)
hvd.shutdown()
