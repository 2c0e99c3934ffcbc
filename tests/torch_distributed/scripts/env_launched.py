"""A script of torch.distributed that takes its rank and its store from the environment, as a launcher sets them."""

import sys

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

torch.set_num_threads(1)
dist.init_process_group("hvd")
rank, size = dist.get_rank(), dist.get_world_size()
tensor = torch.full((100000,), float(rank))
dist.all_reduce(tensor)
assert bool((tensor == size * (size - 1) / 2).all())
received = torch.empty(100000)
works = [dist.isend(tensor, (rank + 1) % size), dist.irecv(received, (rank - 1) % size)]
for work in works:
    work.wait()
assert torch.equal(received, tensor)
print(f"rank {rank} of {size} is done\n", end="", flush=True)  # in one write: lines of two ranks must not mix
dist.destroy_process_group()
sys.exit(0)
