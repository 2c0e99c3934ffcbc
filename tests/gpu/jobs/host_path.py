"""Allreduce through host memory beside the limit of the bus, and what it consists of, in turns. Rank 0 prints a JSON line for each size.

The limit: all ranks copy as many bytes from the GPU to pinned host memory, and as many back, both at once. GB/s count the tensor's bytes once."""

import json
import statistics
import time

import torch

from gpu_rank import IS_SIMULATED, device, hvd

SIZES = (1 << 20, 8 << 20) if IS_SIMULATED else (16 << 20, 64 << 20, 256 << 20)
WARM, TURNS = 3, 10
PART = (4 << 20) // 4  # elements of a part of the runtime's pipeline
SLOTS = [torch.cuda.Stream() for _ in range(3)]
LEAST = torch.ones(1, device=device)
NAMES = {
    "limit": "limit of the bus, both directions",
    "ours": "allreduce through host memory",
    "copies": "only its copies, in parts of 4 MiB",
    "reductions": "only its reductions on the host, in parts of 4 MiB",
    "host": "allreduce of a tensor on the host",
}
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


def copies_in_parts(data, pinned):
    """The copies of the pipeline, without the reduction."""
    parts, host = data.split(PART), pinned.split(PART)

    def copy_in(part):
        if part < len(parts):
            with torch.cuda.stream(SLOTS[part % 3]):
                host[part].copy_(parts[part], non_blocking=True)

    for part in range(3):
        copy_in(part)
    for part, (target, source) in enumerate(zip(parts, host)):
        SLOTS[part % 3].synchronize()
        with torch.cuda.stream(SLOTS[part % 3]):
            target.copy_(source, non_blocking=True)
        copy_in(part + 3)


def reductions_in_parts(pinned):
    """The reductions of the pipeline, without the copies. Three slots of memory, as there."""
    for part in range(-(-pinned.numel() // PART)):
        hvd.allreduce_(pinned.split(PART)[part % 3], op=hvd.Max, name=f"part {part % 3}")


def ways_of(size):
    data, copied = (torch.ones(size // 4, device=device) for _ in range(2))
    pinned = [torch.ones(size // 4, pin_memory=True) for _ in range(2)]
    return {
        "limit": lambda: both_directions(copied, *pinned),
        "ours": lambda: hvd.allreduce_(data, op=hvd.Max, name=f"size {size}"),
        "least": lambda: hvd.allreduce_(LEAST, op=hvd.Max, name="least"),
        "copies": lambda: copies_in_parts(copied, pinned[0]),
        "reductions": lambda: reductions_in_parts(pinned[0]),
        "host": lambda: hvd.allreduce_(pinned[1], op=hvd.Max, name=f"on the host {size}"),
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
    taken = dict(zip(times, hvd.allreduce(medians, op=hvd.Max).tolist()))  # of the slowest rank
    if hvd.rank() == 0:
        speeds = {what: round(size / taken[name] / 1e9, 2) for name, what in NAMES.items()}
        row = {"bytes": size, "GBps": speeds, "least_us": round(1e6 * taken["least"], 1)}
        print(json.dumps({**row, "share": round(taken["limit"] / taken["ours"], 2)}), flush=True)
hvd.shutdown()
