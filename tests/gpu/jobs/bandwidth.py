"""Bus bandwidth of allreduce, ours and that of torch.distributed's NCCL, in turns. Rank 0 prints a JSON line for each size."""

import datetime
import json
import os
import statistics
import time

import torch
import torch.distributed as dist

from gpu_rank import device, hvd

dist.init_process_group(
    "nccl",
    store=dist.TCPStore(
        "127.0.0.1", int(os.environ["PEER_PORT"]), hvd.size(), hvd.rank() == 0, timeout=datetime.timedelta(seconds=60)
    ),
    rank=hvd.rank(),
    world_size=hvd.size(),
)


def seconds(operation):
    torch.cuda.synchronize()
    hvd.barrier()
    start = time.perf_counter()
    operation()
    torch.cuda.synchronize()
    return time.perf_counter() - start


for size in (4, 1 << 20, 16 << 20, 64 << 20, 256 << 20):
    data = torch.ones(size // 4, device=device)
    operations = {
        "ours": lambda data=data, size=size: hvd.allreduce_(data, op=hvd.Max, name=f"x{size}"),
        "torch": lambda data=data: dist.all_reduce(data, op=dist.ReduceOp.MAX),
    }
    times = {name: [] for name in operations}
    for turn in range(25):
        for name, operation in operations.items():
            taken = seconds(operation)
            if turn >= 5:
                times[name].append(taken)
    if hvd.rank() == 0:
        row = {"bytes": size}
        for name, all_times in times.items():
            median = statistics.median(all_times)
            row[name + "_us"] = int(median * 1e6)
            row[name + "_GBps"] = 2 * (hvd.size() - 1) / hvd.size() * size / median / 1e9
        print(json.dumps(row), flush=True)
dist.destroy_process_group()
hvd.shutdown()
