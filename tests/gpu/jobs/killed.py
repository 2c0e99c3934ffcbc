"""One rank is killed or stopped at a certain point of a step; the others continue in a new world without it, on new communicators, and its
replacement joins them.

    killed.py POINT FOLDER RANKS

POINT: allreduce, backward or commit (SIGKILL while that is under way), or stop (SIGSTOP during an allreduce). The gradient is the same on all
ranks, so the weights after each step are known, whatever the world's size. Each rank logs its steps with the time of the monotonic clock to FOLDER.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import torch

from gpu_rank import IS_SIMULATED, device, hvd

point, folder, full = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
COUNT = (1 << 20) if IS_SIMULATED else (8 << 20)
# Between the start of a step and the middle of its allreduce, which takes tens of milliseconds or more on ranks that share a real GPU.
SECONDS_UNTIL_ALLREDUCE = 0.002 if IS_SIMULATED else 0.02
KILL_AT, STEPS_AFTER = 15, 15
claimed = folder / "victim"


def claim():
    """Whether this process is the one to die: the last rank of the first world."""
    if hvd.rank() != full - 1:
        return False
    try:
        claimed.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


is_victim = claim()


def log(what):
    with open(folder / f"rank-{os.getpid()}", "a") as file:
        file.write(f"{what} {time.monotonic_ns()}\n")


def die():
    log("dies")
    os.kill(os.getpid(), signal.SIGSTOP if point == "stop" else signal.SIGKILL)


def die_soon(seconds):
    threading.Thread(target=lambda: (time.sleep(seconds), die()), daemon=True).start()


class DiesInBackward(torch.autograd.Function):
    """Passes everything on; backward ends the process when it is the victim's time."""

    @staticmethod
    def forward(ctx, x, dies):
        ctx.dies = dies
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        if ctx.dies:
            die()
        return gradient, None


class Model(torch.nn.Module):
    """Two weights whose gradients are ones."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Parameter(torch.zeros(COUNT, device=device))
        self.second = torch.nn.Parameter(torch.zeros(COUNT, device=device))

    def forward(self, dies):
        return self.second.sum() + DiesInBackward.apply(self.first, dies).sum()


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model, optimizer, step=0)


def one_step(is_time):
    optimizer.zero_grad()
    if is_time and point in ("allreduce", "stop"):
        die_soon(SECONDS_UNTIL_ALLREDUCE)
    model(is_time and point == "backward").backward()
    optimizer.step()
    state.step += 1
    for weight in model.parameters():
        assert (weight == -state.step).all().item(), (weight.flatten()[:3].tolist(), state.step)
    if is_time and point == "commit":
        die_soon(0.0005)
    state.commit()


@hvd.elastic.run
def train(state):
    """Until the world has been full again for some steps after the death."""
    log(f"world {hvd.size()} from step {state.step}")
    is_last_world = hvd.size() == full and state.step > 0
    goal = state.step + STEPS_AFTER
    while not is_last_world or state.step < goal:
        one_step(is_victim and state.step >= KILL_AT)
        log(f"step {state.step} of {hvd.size()}")


train(state)
print("done at", state.step, "with", hvd.size(), flush=True)
