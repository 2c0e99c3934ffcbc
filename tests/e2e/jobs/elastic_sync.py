"""Loses a rank twice and waits for a new one, and prints what the state and the store of commits hold whenever all ranks have synchronized. With
"changed" rank 0's model is changed after each reset, behind the back of whatever counts changes."""

import json
import os
import signal
import sys

import torch

import horovod.torch as hvd
from horovod import _ffi
from horovod.elastic.tree_store import Placed
from horovod.torch._loading import TREES

RANKS, LOSSES, STEPS = 3, (4, 8), 12


def digest(tree):
    """A number for a state dict, or for state dicts in containers."""
    if isinstance(tree, torch.Tensor):
        return float((tree.double() * torch.arange(1, tree.numel() + 1).reshape(tree.shape)).sum())
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree, key=str)]
    return sum(map(digest, tree)) if isinstance(tree, (list, tuple)) else float(tree or 0)


def held(state):
    return [digest(state.model.state_dict()), digest(state.optimizer.state_dict()), state.batch]


def stored():
    newest = _ffi.store_newest()
    if newest is None:
        return None
    values, trees = Placed(TREES, newest.address).contents()
    return [newest.number, digest(trees["model"]), digest(trees["optimizer"]), values["batch"]]


def watched(name):
    """How often the store was asked to take a commit since the last call."""
    before, begun = getattr(_ffi, name), []

    def call(*arguments):
        begun.append(arguments)
        return before(*arguments)

    setattr(_ffi, name, call)
    return begun


hvd.init()
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(300, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 1))
model[1].tied = torch.nn.Linear(300, 30, bias=False)
model[1].tied.weight = model[0].weight
optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01))
begun = watched("store_begin")


def change():
    if hvd.rank() == 0:
        model[0].weight.data += 1


@hvd.elastic.run
def train(state):
    if hvd.size() == RANKS:
        entry = {"rank": hvd.rank(), "held": held(state), "stored": stored(), "begun": len(begun)}
        print(json.dumps(entry), flush=True)
    while state.batch < STEPS:
        if hvd.size() == RANKS:
            optimizer.zero_grad()
            model(torch.full((5, 300), 0.1 * state.batch) + torch.arange(5.0)[:, None]).square().mean().backward()
            optimizer.step()
            state.batch += 1
        try:
            state.commit()
        finally:
            begun.clear()
        if hvd.size() == RANKS and state.batch in LOSSES and hvd.rank() == RANKS - 1:
            os.kill(os.getpid(), signal.SIGKILL)


state = hvd.elastic.TorchState(model, optimizer, batch=0)
if "changed" in sys.argv:
    state.register_reset_callbacks([change])
train(state)
