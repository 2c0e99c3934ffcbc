"""Allreduce through host memory beside the limit of the bus, and what it consists of, in turns. Rank 0 prints a JSON line for each size.

The limit: all ranks copy as many bytes from the GPU to pinned host memory, and as many back, both at once. GB/s count the tensor's bytes once."""

import json
import statistics
import time

import torch

from gpu_rank import IS_SIMULATED, device, hvd

SIZES = (1 << 20, 8 << 20) if IS_SIMULATED else (16 << 20, 64 << 20, 256 << 20)
WARM, TURNS = 3, 10
PART = (2 << 20) // 4  # elements of a part, of which the runtime has five under way
SLOTS = [torch.cuda.Stream() for _ in range(5)]
LEAST = torch.ones(1, device=device)
torch.set_num_threads(1)
NAMES = {
    "limit": "limit of the bus, both directions",
    "ours": "allreduce through host memory",
    "copies": "only its copies, in parts of 2 MiB",
    "reductions": "only a rank's share of its reductions",
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
    """The copies of the runtime, at its times, without the reduction and the meetings."""
    parts, host = data.split(PART), pinned.split(PART)

    def copy(targets, sources, part):
        if 0 <= part < len(parts):
            with torch.cuda.stream(SLOTS[part % 5]):
                targets[part].copy_(sources[part], non_blocking=True)

    copy(host, parts, 0)
    copy(host, parts, 1)
    for part in range(len(parts) + 1):
        for awaited in (part, part - 3):
            if 0 <= awaited < len(parts):
                SLOTS[awaited % 5].synchronize()
        copy(parts, host, part - 1)
        copy(host, parts, part + 2)


def shares_of_reductions(ours, theirs):
    """What a rank's thread reduces: a share of each part, in memory that it finds as the runtime does."""
    for number in range(-(-ours.numel() // PART)):
        share = slice(0, PART // hvd.size())
        own, other = (each.split(PART)[number % 5][share] for each in (ours, theirs))
        torch.maximum(own, other, out=own)


def ways_of(size):
    data, copied = (torch.ones(size // 4, device=device) for _ in range(2))
    pinned = [torch.ones(size // 4, pin_memory=True) for _ in range(2)]
    return {
        "limit": lambda: both_directions(copied, *pinned),
        "ours": lambda: hvd.allreduce_(data, op=hvd.Max, name=f"size {size}"),
        "least": lambda: hvd.allreduce_(LEAST, op=hvd.Max, name="least"),
        "copies": lambda: copies_in_parts(copied, pinned[0]),
        "reductions": lambda: shares_of_reductions(*pinned),
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
