"""Trains, and commits, for 30 steps; the first time that rank 1 gets to step 10 it allocates all memory.

eats_memory.py MARK      a file that marks that this has happened
"""

import os
import sys

import torch

import horovod.torch as hvd

hvd.init()
model = torch.nn.Linear(4, 4)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
)
state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)


@hvd.elastic.run
def train(state):
    while state.step < 30:
        if state.step == 10 and hvd.rank() == 1 and not os.path.exists(sys.argv[1]):
            open(sys.argv[1], "w").close()
            taken = []
            while True:
                taken.append(bytearray(b"x") * (16 << 20))
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        state.step += 1
        state.commit()


train(state)
print(f"rank {hvd.rank()} of {hvd.size()} is done at step {state.step}", flush=True)
