"""Trains, and commits, for 30 steps; rank 1 takes all the memory there is the first time that it comes to step 10.

eats_memory.py MARK      a file that says that this has been
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
