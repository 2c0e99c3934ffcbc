"""The last rank kills itself while an allreduce is under way; the others go on in a new world without it, on new communicators."""

import os
import signal
import sys
import threading
import time

import torch

from gpu_rank import device, hvd

state = hvd.elastic.ObjectState(step=0)
STEPS = 60
KILL_AT = 20
victim = hvd.rank() == hvd.size() - 1 and not os.path.exists(sys.argv[1])


def kill_soon():
    open(sys.argv[1], "w").close()
    time.sleep(0.002)
    os.kill(os.getpid(), signal.SIGKILL)


@hvd.elastic.run
def train(state):
    while state.step < STEPS:
        if victim and state.step == KILL_AT:
            threading.Thread(target=kill_soon).start()
        data = torch.full((16 << 20,), float(state.step), device=device)
        reduced = hvd.allreduce(data, op=hvd.Average, name="gradients")
        assert (reduced == state.step).all().item(), state.step
        state.step += 1
        state.commit()


train(state)
print("done at", state.step, "with", hvd.size(), flush=True)
