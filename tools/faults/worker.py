"""The training script of tools/faults: a commit each step. It logs each commit() that has returned.

    worker.py LOG_DIR HOST [CHECKPOINT_DIR]

A line of the log is a time of the machine's monotonic clock, `begin` or `returned`, the step, and a token that depends on all
steps before: two histories have different tokens at the same step.
"""

import os
import sys
import time

import torch

import horovod.torch as hvd

PAUSE_S = 0.005  # a step's time, beside that of the operations

hvd.init()
directory, host = sys.argv[1:3]
options = {"checkpoint_dir": sys.argv[3], "checkpoint_every": 20} if len(sys.argv) > 3 else {}
model = torch.nn.Linear(1, 1)
state = hvd.elastic.TorchState(model, torch.optim.SGD(model.parameters(), 0.1), step=0, token=0, **options)
log = open(os.path.join(directory, f"{host}.{os.getpid()}"), "a", buffering=1)  # noqa: SIM115


def note(kind):
    log.write(f"{time.monotonic():.6f} {kind} {state.step} {state.token}\n")


@hvd.elastic.run
def train(state):
    note("begin")
    while True:
        drawn = hvd.allreduce(torch.randint(1 << 20, (1,)), name="draw", op=hvd.Sum)
        state.token = (state.token * 31 + int(drawn)) % (1 << 61)
        state.step += 1
        state.commit()
        note("returned")
        time.sleep(PAUSE_S)


train(state)
