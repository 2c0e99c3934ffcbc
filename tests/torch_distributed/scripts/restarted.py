"""Starts of torchrun that all have a group: a rank fails in each but the last, restarted.py STARTS."""

import os
import sys

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

dist.init_process_group("hvd")
rank, size = dist.get_rank(), dist.get_world_size()
for group in (dist.group.WORLD, dist.new_group()):
    total = torch.ones(1)
    dist.all_reduce(total, group=group)
    assert total.item() == size
if int(os.environ["TORCHELASTIC_RESTART_COUNT"]) + 1 < int(sys.argv[1]):
    dist.barrier()
    os._exit(rank)
print(f"rank {rank} of {size} is done", flush=True)
dist.destroy_process_group()
