"""Parallelism of two dimensions, tensor and pipeline parallelism, on 4 ranks: meshes.py STORE RANK RANKS [CASE]"""

import copy
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

from compared import compare

STEPS = 3


class Block(torch.nn.Module):
    """Two layers with a connection around them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return data + self.down(self.up(self.norm(data)).relu())


def batch(step: int, of: int) -> torch.Tensor:
    return torch.randn(8, 16, generator=torch.Generator().manual_seed(100 * step + of))


def train(model: torch.nn.Module, data_of: int) -> list[Any]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        loss = model(batch(step, data_of)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return [losses, dict(model.state_dict())]


PLAN = {"up": ColwiseParallel(), "down": RowwiseParallel()}


def hybrid_sharding() -> Any:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = torch.nn.Sequential(Block(), Block())
    for block in model:
        fully_shard(block, mesh=mesh)
    return train(fully_shard(model, mesh=mesh), dist.get_rank())


def tensor_parallel() -> Any:
    """As one process computes it."""
    mesh = init_device_mesh("cpu", (4,))
    alone = torch.nn.Sequential(Block(), Block())
    model = copy.deepcopy(alone)
    for block in model:
        parallelize_module(block, mesh, PLAN)
    found, wanted = train(model, 0), train(alone, 0)
    torch.testing.assert_close(torch.stack(found[0]), torch.stack(wanted[0]))
    return found


def sequence_parallel() -> Any:
    mesh = init_device_mesh("cpu", (4,))
    model = Block()
    plan = {
        "norm": SequenceParallel(sequence_dim=0),
        "up": ColwiseParallel(input_layouts=Shard(0)),
        "down": RowwiseParallel(output_layouts=Shard(0), use_local_output=True),
    }
    for name, module in model.named_children():
        parallelize_module(module, mesh, plan[name])
    whole = batch(0, 0)
    hidden = model.down(model.up(model.norm(whole.chunk(4)[dist.get_rank()])).relu())
    hidden.pow(2).sum().backward()
    return [hidden, {name: weight.grad for name, weight in model.named_parameters()}]


def parallel_loss() -> Any:
    mesh = init_device_mesh("cpu", (4,))
    model = torch.nn.Linear(16, 12)
    parallelize_module(model, mesh, ColwiseParallel(output_layouts=Shard(-1), use_local_output=False))
    with loss_parallel():
        loss = torch.nn.functional.cross_entropy(model(batch(0, 0)), torch.arange(8))
        loss.backward()
    return [loss, {name: weight.grad for name, weight in model.named_parameters()}]


def tensor_parallel_and_fsdp2() -> Any:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    model = torch.nn.Sequential(Block(), Block())
    for block in model:
        parallelize_module(block, mesh["tensor"], PLAN)
        fully_shard(block, mesh=mesh["data"])
    return train(fully_shard(model, mesh=mesh["data"]), mesh["data"].get_local_rank())


def run_pipeline(schedule_of: Any, stages_per_rank: int = 1) -> Any:
    """Pipelines of 2 stages, or 4, on pairs of ranks."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "pipe"))
    group = mesh.get_group("pipe")
    place, count = mesh.get_local_rank("pipe"), 2 * stages_per_rank
    blocks = [Block() for _ in range(count)]
    mine = range(place, count, 2)
    stages = [PipelineStage(blocks[i], i, count, torch.device("cpu"), group=group) for i in mine]
    schedule = schedule_of(
        stages if stages_per_rank > 1 else stages[0],
        n_microbatches=4,
        loss_fn=lambda found, wanted: (found - wanted).pow(2).mean(),
    )
    parameters = [weight for i in mine for weight in blocks[i].parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    losses: list[torch.Tensor] = []
    for step in range(STEPS):
        data = batch(step, mesh.get_local_rank("data"))
        target, of_step = data.flip(1), []
        given = [data] if place == 0 else []
        wanted = {"target": target, "losses": of_step} if mine[-1] == count - 1 else {}
        schedule.step(*given, **wanted)
        optimizer.step()
        optimizer.zero_grad()
        losses += of_step
    return [losses, parameters]


def pipeline_gpipe() -> Any:
    return run_pipeline(ScheduleGPipe)


def pipeline_1f1b() -> Any:
    return run_pipeline(Schedule1F1B)


def pipeline_interleaved() -> Any:
    return run_pipeline(ScheduleInterleaved1F1B, stages_per_rank=2)


if __name__ == "__main__":
    compare(
        [
            hybrid_sharding,
            tensor_parallel,
            sequence_parallel,
            parallel_loss,
            tensor_parallel_and_fsdp2,
            pipeline_gpipe,
            pipeline_1f1b,
            pipeline_interleaved,
        ]
    )
