"""Trains with a commit after each step, and flips a bit on one rank: ``corrupted.py FOLDER WHAT RANK STEPS [KILLED]``.

WHAT: parameter, optimizer or allreduce (a bit of that rank's is flipped at step 5, once in the job); none; local: each rank
trains parameters of its own; or script: the steps have three commits, and the rank changes a parameter at the end of each from step 1
on, as a script that prunes on one rank. At step 7 rank KILLED kills itself, once in the job.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

import horovod.torch as hvd

folder, what, rank, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
killed = int(sys.argv[5]) if len(sys.argv) > 5 else -1
AT, KILLED_AT = 5, 7
flipped_here = False


def flip(tensor):
    """Flips the lowest bit of the exponent of the first element."""
    tensor.detach().reshape(-1)[:1].view(torch.int32).bitwise_xor_(1 << 23)


def say(**values):
    print(json.dumps({"rank": hvd.rank(), "size": hvd.size(), **values}), flush=True)


hvd.init()
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
own = torch.nn.Linear(2, 1)  # which each rank trains for itself
parts = 3 if what == "script" else 1
if what != "local":
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model, optimizer, own=own, step=0)


def is_first(name):
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def is_the_time():
    global flipped_here
    if state.step == AT and hvd.rank() == rank and what not in ("none", "local", "script") and is_first("flipped"):
        flipped_here = True
        return True
    return False


def step():
    optimizer.zero_grad()
    data = torch.randn(16, 8, generator=torch.Generator().manual_seed(100 * state.step + hvd.rank()))
    (model(data) - data.sum(1, keepdim=True)).pow(2).mean().backward()
    own(data[:, :2]).mean().backward()
    flips = is_the_time()
    if flips and what == "allreduce":
        optimizer.synchronize()
        flip(model[0].weight.grad)
        with optimizer.skip_synchronize():
            optimizer.step()
    else:
        optimizer.step()
    with torch.no_grad():
        for parameter in own.parameters():
            parameter -= 0.01 * parameter.grad
    if flips and what == "parameter":
        flip(model[2].weight)
    if flips and what == "optimizer":
        flip(optimizer.state[model[0].weight]["exp_avg_sq"])


@hvd.elastic.run
def train(state):
    say(begins=state.step, flipped=flipped_here)
    while state.step < steps:
        if state.step == KILLED_AT and hvd.rank() == killed and is_first("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in range(parts - 1):
            step()
            state.commit()
        step()
        if what == "script" and state.step > 0 and hvd.rank() == rank:
            flip(model[2].weight)
        state.step += 1
        state.commit()


train(state)
same = hvd.allgather(torch.cat([p.detach().reshape(1, -1) for p in model.parameters()], 1), name="same")
say(done=state.step, same=bool((same == same[0]).all()))
