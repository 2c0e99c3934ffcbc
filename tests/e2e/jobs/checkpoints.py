"""A training that writes checkpoints: DIRECTORY, STEPS, MEGABYTES, and perhaps a named pipe that is read before the last step. Prints what is in the
directory after each."""

import json
import os
import sys

import torch

import horovod.torch as hvd

directory, steps, megabytes, *gate = sys.argv[1:]
hvd.init()
model = torch.nn.Linear(int(float(megabytes) * (1 << 18)), 1, bias=False)
state = hvd.elastic.TorchState(model, step=0, checkpoint_dir=directory)


def found():
    state._checkpoints.wait()
    return sorted(name for name in os.listdir(directory) if name.endswith(".hvd"))


@hvd.elastic.run
def train(state):
    while state.step < int(steps):
        state.step += 1
        if gate and state.step == int(steps):
            with open(gate[0]) as pipe:
                pipe.read()
        state.commit()
        print(json.dumps({"step": state.step, "found": found()}), flush=True)


train(state)
