"""A script as it is written for torchrun: it knows nothing of Horovod. Trains with DistributedDataParallel, and says what it has learned."""

import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
assert (rank, world) == (dist.get_rank(), dist.get_world_size())

torch.manual_seed(rank)  # DistributedDataParallel begins with rank 0's weights
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    model(torch.full((2, 4), float(rank + step))).sum().backward()
    optimizer.step()
weights = [parameter.flatten().tolist() for parameter in model.parameters()]
groups = {
    name: os.environ[name]
    for name in ("LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE")
}
print(json.dumps({"rank": rank, "world": world, "local_rank": local_rank, "weights": weights, **groups}), flush=True)
dist.destroy_process_group()
# Not the end of the interpreter. DistributedDataParallel keeps torch's Gloo group, and the group's threads, beyond
# destroy_process_group. If such a thread waits for the interpreter's lock when the interpreter ends, to release the last
# all-reduce, torch aborts the process: "terminate called without an active exception"
# (https://github.com/pytorch/pytorch/issues/190489).
os._exit(0)
