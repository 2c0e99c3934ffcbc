"""A script for torchrun with what shards a model: FSDP, DTensor, and a distributed checkpoint that is loaded again. Argument: its folder."""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,))

torch.manual_seed(1)
whole = torch.arange(8.0 * world).reshape(2 * world, 4)
sharded = distribute_tensor(whole, mesh, [Shard(0)])
assert isinstance(sharded, DTensor) and sharded.to_local().shape == (2, 4)
assert torch.equal((sharded * 2).full_tensor(), whole * 2)

model = fully_shard(torch.nn.Linear(4, 2 * world), mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.weight.full_tensor().clone()
model(torch.full((3, 4), float(rank + 1))).sum().backward()
optimizer.step()
# The mean of the ranks' gradients, each three times its input.
mean = 3 * (world + 1) / 2
assert torch.allclose(model.weight.full_tensor(), before - 0.1 * mean, atol=1e-5)

after = model.weight.full_tensor().clone()
checkpoint.save({"model": model.state_dict()}, checkpoint_id=sys.argv[1])
with torch.no_grad():
    model.weight.zero_()
state = {"model": model.state_dict()}
checkpoint.load(state, checkpoint_id=sys.argv[1])
model.load_state_dict(state["model"])
assert torch.equal(model.weight.full_tensor(), after)
print("sharded", rank, flush=True)
dist.destroy_process_group()
os._exit(0)  # as torchrun_script.py: the group's threads are still there
