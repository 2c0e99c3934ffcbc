"""Allreduce, ours and that of torch.distributed's NCCL, in turns. Rank 0 prints a JSON line for each size: microseconds, medians; GB/s on the bus."""

import json
import os
import statistics
import time

import torch
import torch.distributed as dist

from gpu_rank import IS_SIMULATED, device, hvd

SIZES = (4, 1 << 20) if IS_SIMULATED else (4, 1 << 20, 16 << 20, 64 << 20, 256 << 20)
WARM = 3

ways = {"ours": lambda data: hvd.allreduce_(data, op=hvd.Max, name=f"size {data.numel()}")}
if dist.is_nccl_available():
    store = dist.FileStore(os.environ["PEER_STORE"], hvd.size())
    dist.init_process_group("nccl", store=store, rank=hvd.rank(), world_size=hvd.size())
    ways["torch"] = lambda data: dist.all_reduce(data, op=dist.ReduceOp.MAX)


def seconds(operation, data):
    torch.cuda.synchronize()
    hvd.barrier()
    start = time.perf_counter()
    operation(data)
    torch.cuda.synchronize()
    return time.perf_counter() - start


for size in SIZES:
    turns = 20 if size < 64 << 20 else 7  # each may take half a second
    data = torch.ones(size // 4, device=device)
    times = {name: [] for name in ways}
    for turn in range(WARM + turns):
        for name, operation in ways.items():
            taken = seconds(operation, data)
            if turn >= WARM:
                times[name].append(taken)
    row = {"bytes": size}
    for name, all_times in times.items():
        median = statistics.median(all_times)
        row[name + "_us"] = round(median * 1e6, 1)
        row[name + "_GBps"] = round(2 * (hvd.size() - 1) / hvd.size() * size / median / 1e9, 2)
    if "torch" in times:
        row["ratio"] = round(row["torch_us"] / row["ours_us"], 2)
    if hvd.rank() == 0:
        print(json.dumps(row), flush=True)
if "torch" in ways:
    dist.destroy_process_group()
hvd.shutdown()
