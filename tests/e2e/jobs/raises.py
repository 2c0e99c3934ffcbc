"""Two ranks train with a commit each step; in the first world rank 1 raises, and its process does not end before the other has trained on without it.

raises.py DIRECTORY
"""

import atexit
import os
import sys
from pathlib import Path

import torch

import horovod.torch as hvd
from horovod import _ffi

GOES_ON = Path(sys.argv[1]) / "goes_on"  # a pipe: opening it waits for who opens the other end
hvd.init()
model = torch.nn.Linear(2, 2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
)
state = hvd.elastic.TorchState(model, optimizer, step=0)


def linger():
    os.close(os.open(GOES_ON, os.O_RDONLY))


@hvd.elastic.run
def train(state):
    world = _ffi.query("epoch")
    while state.step < 20:
        if world == 1 and state.step == 5:
            model(torch.ones(2)).sum().backward()
            optimizer.step()  # a step that is lost
            hvd.barrier()  # each has done it, and not rank 1 alone
            if hvd.rank() == 1:
                atexit.register(linger)
                raise RuntimeError("as it is to")
        model(torch.ones(2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        state.step += 1
        state.commit()
        if world == 2 and state.step == 7:
            os.close(os.open(GOES_ON, os.O_WRONLY))


train(state)
