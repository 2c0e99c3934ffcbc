"""DistributedDataParallel and what goes with it, on 2 ranks: data_parallel.py STORE RANK RANKS [CASE]"""

from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.distributed.algorithms import Join
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from compared import compare

STEPS = 4


class Net(torch.nn.Module):
    """A part of it is used at every second step only, if it branches."""

    def __init__(self, branches: bool = False) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.norm = torch.nn.BatchNorm1d(32)
        self.extra = torch.nn.Linear(32, 32) if branches else torch.nn.Identity()
        self.last = torch.nn.Linear(32, 4)
        self.branches = branches

    def forward(self, data: torch.Tensor, step: int = 0) -> torch.Tensor:
        hidden = self.norm(self.first(data)).relu()
        if not self.branches or (step + dist.get_rank()) % 2:
            hidden = self.extra(hidden)
        return self.last(hidden)


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(8, 16, generator=generator), torch.randint(0, 4, (8,), generator=generator)


def train(model: torch.nn.Module, optimizer: Optional[Any] = None, branches: bool = False) -> list[Any]:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(STEPS):
        data, target = batch(step)
        optimizer.zero_grad()
        loss = cross_entropy(model(data, step) if branches else model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, dict(model.state_dict())]


def ddp() -> Any:
    return train(DistributedDataParallel(Net()))


def ddp_small_buckets() -> Any:
    return train(DistributedDataParallel(Net(), bucket_cap_mb=0.0005, gradient_as_bucket_view=True))


def ddp_unused_parameters() -> Any:
    return train(DistributedDataParallel(Net(branches=True), find_unused_parameters=True), branches=True)


def ddp_static_graph() -> Any:
    return train(DistributedDataParallel(Net(), static_graph=True))


def ddp_accumulation() -> Any:
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        with model.no_sync():
            cross_entropy(model(batch(2 * step)[0]), batch(2 * step)[1]).backward()
        cross_entropy(model(batch(2 * step + 1)[0]), batch(2 * step + 1)[1]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return dict(model.state_dict())


def ddp_comm_hooks() -> Any:
    found = []
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
        model = DistributedDataParallel(Net())
        model.register_comm_hook(None, hook)
        found.append(train(model))
    return found


def ddp_power_sgd() -> Any:
    model = DistributedDataParallel(Net())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return train(model)


def ddp_uneven_inputs() -> Any:
    model = DistributedDataParallel(torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for step in range(2 + 2 * dist.get_rank()):
            data, target = batch(step)
            optimizer.zero_grad()
            cross_entropy(model(data), target).backward()
            optimizer.step()
    return dict(model.state_dict())


def zero_redundancy() -> Any:
    model = DistributedDataParallel(Net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
    found = train(model, optimizer)
    optimizer.consolidate_state_dict(to=0)
    return found


def averaged_models() -> Any:
    model = torch.nn.Linear(16, 4)
    averager = PeriodicModelAverager(period=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        data, target = batch(step)
        optimizer.zero_grad()
        cross_entropy(model(data), target).backward()
        optimizer.step()
        averager.average_parameters(model.parameters())
    return dict(model.state_dict())


if __name__ == "__main__":
    compare(
        [
            ddp,
            ddp_small_buckets,
            ddp_unused_parameters,
            ddp_static_graph,
            ddp_accumulation,
            ddp_comm_hooks,
            ddp_power_sgd,
            ddp_uneven_inputs,
            zero_redundancy,
            averaged_models,
        ]
    )
