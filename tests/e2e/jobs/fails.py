"""Trains; at step 3 rank 1 does what the argument says."""

import sys

import torch

import horovod.torch as hvd

hvd.init()
model = torch.nn.Linear(2, 2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
)


def load(step):
    if step == 3 and hvd.rank() == 1:
        if sys.argv[1] == "exit":
            sys.exit(0)
        raise ValueError("bad sample 17")
    return torch.ones(4, 2)


def train():
    for step in range(10):
        model(load(step)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


train()
