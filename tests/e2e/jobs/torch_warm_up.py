"""Takes a step before the first run, as scripts do that warm up, and in each reset callback. Asks for a second slot in the file HOSTS, and ends after
three steps with it.

    torch_warm_up.py HOSTS
"""

import sys
from pathlib import Path

import torch

import horovod.torch as hvd

hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())


def take_step():
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


take_step()
state = hvd.elastic.TorchState(model, optimizer, together=0)
state.register_reset_callbacks([take_step])


@hvd.elastic.run
def train(state):
    while state.together < 3:
        take_step()
        state.together += hvd.size() == 2
        state.commit()
        Path(sys.argv[1]).write_text("localhost:2\n")


train(state)
print(f"weights {model.weight.tolist()}")
