"""Rank 1 is killed at a random moment of an operation that all ranks repeat: kills.py STORE RANK RANKS OPERATION SEED

The others print the error that ends their loop; a wrong number is an assertion.
"""

import datetime
import os
import random
import signal
import sys

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

store, rank, size, operation, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
torch.set_num_threads(1)
dist.init_process_group("hvd", init_method=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
COUNT = 1 << 18
big = torch.full((COUNT,), float(rank + 1))
everyone = torch.empty(COUNT * size)
parts = [torch.empty(COUNT) for _ in range(size)]
total = float(size * (size + 1) // 2)
gather_into = getattr(dist, "all_gather_into_tensor", dist._all_gather_base)
reduce_scatter_into = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)


def all_are(tensor: torch.Tensor, value: float) -> bool:
    return bool((tensor == value).all())


def in_order(tensor: torch.Tensor) -> bool:
    return all(all_are(part, of + 1.0) for of, part in enumerate(tensor.view(size, -1)))


def exchange(count: int) -> None:
    to, source = (rank + 1) % size, (rank - 1) % size
    received = parts[0][:count].zero_()
    for work in [dist.isend(big[:count], to), dist.irecv(received, source)]:
        work.wait()
    assert all_are(received, source + 1.0)


def once() -> None:
    if operation == "all_reduce":
        tensor = big.clone()
        dist.all_reduce(tensor)
        assert all_are(tensor, total)
    elif operation == "all_gather":
        gather_into(everyone.zero_(), big)
        assert in_order(everyone)
    elif operation == "reduce_scatter":
        reduce_scatter_into(parts[0].zero_(), torch.full((COUNT * size,), rank + 1.0))
        assert all_are(parts[0], total)
    elif operation == "broadcast":
        tensor = big.clone()
        dist.broadcast(tensor, 0)
        assert all_are(tensor, 1.0)
    elif operation == "all_to_all":
        dist.all_to_all_single(everyone.zero_(), torch.full((COUNT * size,), rank + 1.0))
        assert in_order(everyone)
    elif operation == "gather":
        dist.gather(big, parts if rank == 0 else None, 0)
        assert rank or in_order(torch.cat(parts))
    elif operation == "scatter":
        outputs = [torch.full((COUNT,), to + 1.0) for to in range(size)] if rank == 0 else None
        dist.scatter(everyone[:COUNT].zero_(), outputs, 0)
        assert all_are(everyone[:COUNT], rank + 1.0)
    elif operation == "barrier":
        dist.barrier()
    elif operation == "small_messages":
        exchange(4)
    elif operation == "large_messages":
        exchange(COUNT)
    else:
        raise AssertionError(operation)


once()
dist.barrier()
if rank == 1:
    # By a timer of the kernel, which interrupts whatever the process does.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, random.Random(seed).uniform(0.0005, 0.02))
try:
    while True:
        once()
except RuntimeError as error:
    print(f"rank {rank}: {error}", flush=True)
os._exit(0)
