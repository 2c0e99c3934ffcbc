"""A script for torchrun: all ranks add up ones until the file STOP is there, and say in which group they do it.

torchrun ... torchrun_nodes.py STOP
"""

import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size} group {os.environ['GROUP_RANK']} pid {os.getpid()}\n", end="", flush=True)
goes_on = True
while goes_on:
    told = torch.tensor([float(rank == 0 and os.path.exists(sys.argv[1])), 1.0])
    dist.all_reduce(told)
    assert told[1] == size
    goes_on = told[0] == 0
print(f"rank {rank} of {size} done\n", end="", flush=True)
dist.destroy_process_group()
os._exit(0)  # torch 2.13 may abort at the end of an interpreter that used gloo
