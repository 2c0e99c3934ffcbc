"""A small training, on the ranks' batches and on the joined ones, for tests of optimizers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd

OPTIMIZERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda params: torch.optim.Adam(params, lr=0.01),
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.01),
    "rmsprop": lambda params: torch.optim.RMSprop(params, lr=0.01),
}
BATCH = 4


def net():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def batches(count, seed=3):
    """`count` joined batches of all ranks, the same everywhere, and this rank's parts of them."""
    generator = torch.Generator().manual_seed(seed)
    joined = [
        (
            torch.randn(BATCH * hvd.size(), 6, generator=generator),
            torch.randn(BATCH * hvd.size(), 3, generator=generator),
        )
        for _ in range(count)
    ]
    mine = slice(BATCH * hvd.rank(), BATCH * (hvd.rank() + 1))
    return joined, [(x[mine], y[mine]) for x, y in joined]


def loss_of(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


def assert_same(model, reference, tolerance=1e-5):
    for (name, p), q in zip(model.named_parameters(), reference.parameters()):
        assert torch.allclose(p, q, atol=tolerance), name
        gathered = hvd.allgather(p.detach().reshape(1, -1))
        assert all(torch.equal(row, gathered[0]) for row in gathered), name


def train(model, optimizer, data, accumulate=1):
    """A step after every `accumulate` batches, and after the last."""
    for i, batch in enumerate(data):
        (loss_of(model, batch) / accumulate).backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(data):
            optimizer.step()
            optimizer.zero_grad()


def distributed(model, optimizer, **kwargs):
    return hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), **kwargs)


def after_each_accumulation(p, change):
    """Calls `change(p)` whenever backward() has added to p.grad. Returns the hook."""
    if hasattr(p, "register_post_accumulate_grad_hook"):
        return p.register_post_accumulate_grad_hook(change)
    return _Hook(p, change)


class _Hook:
    """A hook of torch before 2.1. It keeps the node of the graph, which is all that keeps the hook."""

    def __init__(self, p, change):
        self._node = p.expand_as(p).grad_fn.next_functions[0][0]
        self.remove = self._node.register_hook(lambda *_: change(p)).remove
