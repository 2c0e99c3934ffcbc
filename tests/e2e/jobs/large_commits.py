"""Commits a state of 200 MB five times: with it, two commits and torch a worker takes some 800 MB."""

import torch

import horovod.torch as hvd

hvd.init()
model = torch.nn.Linear(50 << 10, 1 << 10, bias=False)
state = hvd.elastic.TorchState(model=model, step=0)


@hvd.elastic.run
def train(state):
    while state.step < 5:
        state.step += 1
        state.commit()


train(state)
print(f"rank {hvd.rank()} is done at step {state.step}", flush=True)
