"""The average of many tensors, by the ways to hand them to NCCL, in turns. Prints a JSON line for each list of tensors: microseconds, medians.

one_group: all calls of NCCL in one group, as DistributedOptimizer's batches are.
ten_groups: the same in ten parts.
as_they_come: each tensor by itself, as backward yields them.
one_buffer: copied to one buffer, reduced by one call, and copied back.
"""

import json
import statistics
import time

import torch

from gpu_rank import IS_SIMULATED, device, hvd

LISTS = {"1000 tensors of 16 KiB": (1000, 4 << 10), "50 tensors of 4 MiB": (50, 1 << 20)}
if IS_SIMULATED:
    LISTS = {"20 tensors of 16 KiB": (20, 4 << 10)}
WARM, TURNS, PARTS = 3, 9, 10


def one_group(tensors):
    hvd.grouped_allreduce_(tensors, name=f"one group of {len(tensors)}")


def ten_groups(tensors):
    handles = [
        hvd.grouped_allreduce_async_(tensors[part::PARTS], name=f"group {part} of {len(tensors)}")
        for part in range(PARTS)
    ]
    for handle in handles:
        hvd.synchronize(handle)


def as_they_come(tensors):
    handles = [hvd.allreduce_async_(each, name=f"{at} of {len(tensors)}") for at, each in enumerate(tensors)]
    for handle in handles:
        hvd.synchronize(handle)


def one_buffer(tensors):
    buffer = torch.cat(tensors)
    hvd.allreduce_(buffer, name=f"buffer of {len(tensors)}")
    torch._foreach_copy_(tensors, list(buffer.split([len(each) for each in tensors])))


def microseconds(way, tensors):
    torch.cuda.synchronize()
    hvd.barrier()
    start = time.perf_counter()
    way(tensors)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6


for name, (count, length) in LISTS.items():
    tensors = [torch.ones(length, device=device) for _ in range(count)]
    ways = (one_group, ten_groups, as_they_come, one_buffer)
    times = {way.__name__: [] for way in ways}
    for turn in range(WARM + TURNS):
        for way in ways:
            taken = microseconds(way, tensors)
            if turn >= WARM:
                times[way.__name__].append(taken)
    assert all((each == 1).all().item() for each in tensors)
    if hvd.rank() == 0:
        medians = {way: round(statistics.median(all_times)) for way, all_times in times.items()}
        print(json.dumps({"tensors": name, "us": medians}), flush=True)
hvd.shutdown()
