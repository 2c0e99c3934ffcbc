"""Sharded models, checkpoints, functional collectives and torch.compile on 2 ranks: sharded.py STORE RANK RANKS [CASE]"""

import os
import shutil
import sys
import tempfile
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from compared import compare

STEPS = 4


class Block(torch.nn.Module):
    """Two layers with a connection around them."""

    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(16, 33)
        self.down = torch.nn.Linear(33, 16)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return data + self.down(self.up(data).relu())


def make() -> torch.nn.Sequential:
    return torch.nn.Sequential(Block(), Block(), torch.nn.Linear(16, 3))


def batch(step: int) -> torch.Tensor:
    return torch.randn(8, 16, generator=torch.Generator().manual_seed(100 * step + dist.get_rank()))


def train(model: torch.nn.Module, optimizer: Any = None, steps: int = STEPS) -> list[float]:
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        loss = model(batch(step)).pow(2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def shard(**options: Any) -> torch.nn.Sequential:
    model = make()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def fsdp2() -> Any:
    model = shard()
    return [train(model), dict(model.state_dict())]


def fsdp2_keeps_parameters() -> Any:
    model = shard(reshard_after_forward=False)
    return [train(model), dict(model.state_dict())]


def fsdp2_mixed_precision() -> Any:
    model = shard(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    return [train(model), dict(model.state_dict())]


def fsdp2_accumulation() -> Any:
    model = shard()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        model.set_requires_gradient_sync(step % 2 == 1)
        model(batch(step)).pow(2).mean().backward()
        if step % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
    return dict(model.state_dict())


def fsdp1() -> Any:
    model = FullyShardedDataParallel(
        make(), auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.device("cpu"), use_orig_params=True
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        loss = model(batch(step)).pow(2).mean()
        loss.backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with FullyShardedDataParallel.summon_full_params(model):
        return [losses, {name: value.clone() for name, value in model.named_parameters()}]


def common_folder() -> str:
    of_rank_0 = [
        tempfile.mkdtemp(dir=os.path.dirname(sys.argv[1].removeprefix("file://"))) if dist.get_rank() == 0 else ""
    ]
    dist.broadcast_object_list(of_rank_0)
    return of_rank_0[0]


def checkpoints() -> Any:
    """A model that is loaded goes on as the one that was saved."""
    folder = common_folder()
    saved = shard()
    optimizer = torch.optim.Adam(saved.parameters(), lr=0.01)
    train(saved, optimizer)
    weights, state = get_state_dict(saved, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder)
    torch.manual_seed(1)
    loaded = shard()
    other = torch.optim.Adam(loaded.parameters(), lr=0.01)
    weights, state = get_state_dict(loaded, other)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=folder)
    set_state_dict(loaded, other, model_state_dict=weights, optim_state_dict=state)
    losses = train(saved, optimizer), train(loaded, other)
    assert losses[0] == losses[1], losses
    return [losses, dict(loaded.state_dict())]


def saved_asynchronously() -> Any:
    folder = common_folder()
    weights = {"weight": distribute_tensor(torch.arange(8.0), init_device_mesh("cpu", (2,)), [Shard(0)])}
    dcp.async_save(weights, checkpoint_id=folder).result()
    found = {"weight": distribute_tensor(torch.zeros(8), init_device_mesh("cpu", (2,)), [Shard(0)])}
    dcp.load(found, checkpoint_id=folder)
    assert torch.equal(found["weight"].full_tensor(), torch.arange(8.0))
    return found


def dtensor() -> Any:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    left = distribute_tensor(torch.randn(7, 5), mesh, [Shard(0)])  # of uneven parts
    right = distribute_tensor(torch.randn(5, 6), mesh, [Replicate()])
    product = left @ right
    return [
        product,
        product.redistribute(mesh, [Shard(1)]),
        product.sum(),
        DTensor.from_local(batch(0), mesh, [Shard(0)]),
    ]


def functional_collectives() -> Any:
    group = dist.group.WORLD
    own = torch.randn(4, 6) + dist.get_rank()
    return [
        functional.all_reduce(own, "sum", group),
        functional.all_gather_tensor(own, 0, group),
        functional.all_gather_tensor(own, 1, group),
        functional.reduce_scatter_tensor(own, "sum", 0, group),
        functional.all_to_all_single(own, None, None, group),
        functional.broadcast(own, 1, group),
        functional.all_reduce_coalesced([own, own * 2], "max", group),
    ]


def compiled() -> Any:
    """A collective within the graph."""

    def scaled(data: torch.Tensor) -> torch.Tensor:
        total = functional.all_reduce(data * 2, "sum", dist.group.WORLD)
        return functional.all_gather_tensor(total.relu() + data, 0, dist.group.WORLD).sum(0)

    graph = torch.compile(scaled, fullgraph=True)
    torch._dynamo.reset()
    return [graph(batch(step)) for step in range(3)]


def compiled_ddp() -> Any:
    torch._dynamo.reset()
    model = torch.nn.parallel.DistributedDataParallel(make())
    return [train(torch.compile(model)), dict(model.state_dict())]


if __name__ == "__main__":
    compare(
        [
            fsdp2,
            fsdp2_keeps_parameters,
            fsdp2_mixed_precision,
            fsdp2_accumulation,
            fsdp1,
            checkpoints,
            saved_asynchronously,
            dtensor,
            functional_collectives,
            *([compiled, compiled_ddp] if shutil.which("g++") else []),
        ]
    )
