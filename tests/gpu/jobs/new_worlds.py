"""New worlds of the same ranks, as after each change of an elastic job. Rank 0 prints a JSON line: milliseconds, medians."""

import json
import statistics
import time

import torch

from gpu_rank import device, hvd

WORLDS = 5
data = torch.ones(1, device=device)
times = {"init": [], "first_allreduce": [], "second_allreduce": [], "shutdown": []}


def timed(what, operation):
    start = time.perf_counter()
    operation()
    torch.cuda.synchronize()
    times[what].append((time.perf_counter() - start) * 1e3)


def reduce():
    hvd.allreduce_(data, op=hvd.Max, name="any")


hvd.shutdown()  # the world that gpu_rank has made
for _ in range(WORLDS):
    timed("init", hvd.init)
    hvd.barrier()
    timed("first_allreduce", reduce)
    timed("second_allreduce", reduce)
    rank = hvd.rank()
    timed("shutdown", hvd.shutdown)
if rank == 0:
    print(json.dumps({name: round(statistics.median(each), 1) for name, each in times.items()}), flush=True)
