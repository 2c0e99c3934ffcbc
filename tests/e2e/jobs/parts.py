"""Two nets in a list, optimizers in a dict, a scheduler of the script's own, moving averages and a random generator. Workers kill themselves
once, after their fifth commit. Prints all that it has at the end.

parts.py FOLDER WHO   WHO: the ranks that die, as in 0,1; none: -
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError

STEPS = 10
flag, victims = Path(sys.argv[1]) / "died", sys.argv[2].split(",")
hvd.init()
torch.manual_seed(os.getpid())  # each process makes others: the state gives them the same


class Decay:
    def __init__(self, optimizer):
        self.optimizer, self.steps = optimizer, 0

    def step(self):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = 0.1 / self.steps

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


def die_once(step):
    if step != 5 or flag.exists():
        return
    with contextlib.suppress(HorovodInternalError):  # of ranks that were killed
        hvd.barrier()  # all have looked
    if str(hvd.rank()) in victims:
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)


nets = [torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)]
for net in nets:
    for number, parameter in enumerate(net.parameters()):
        parameter.data.copy_(torch.linspace(0, 1, parameter.numel()).reshape(parameter.shape) + number)
optimizers = {
    name: hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), 0.1, momentum=0.9), net.named_parameters(name))
    for name, net in zip("gd", nets)
}
decay = Decay(optimizers["g"])
ema = {name: value.clone() for name, value in nets[0].state_dict().items()}
data = torch.Generator().manual_seed(1)
state = hvd.elastic.TorchState(nets=nets, optimizers=optimizers, decay=decay, ema=ema, data=data, step=0)


@hvd.elastic.run
def train(state):
    while state.step < STEPS:
        batch = torch.rand(2, 3, generator=data)  # the same on all ranks
        for optimizer in optimizers.values():
            optimizer.zero_grad()
        nets[1](nets[0](batch)).pow(2).mean().backward()
        for optimizer in optimizers.values():
            optimizer.step()
        decay.step()
        for name, value in nets[0].state_dict().items():
            ema[name].lerp_(value, 0.5)
        state.step += 1
        state.commit()
        die_once(state.step)


train(state)
found = [[p.tolist() for p in net.parameters()] for net in nets]
found += [[value.tolist() for value in ema.values()], decay.steps, optimizers["g"].param_groups[0]["lr"]]
print(json.dumps(found), flush=True)
