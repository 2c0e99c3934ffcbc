"""A training of plain values whose ranks commit HELD steps, say so, and wait for the file `killed`. A replacement says that it starts, and waits for
the file `gate` before it takes part."""

import os
import sys
from pathlib import Path

import numpy

import horovod.numpy as hvd
from waiting import wait_until

HELD = 5
here = Path(sys.argv[1])
if (here / "killed").exists():
    print("replacement starts", flush=True)
    wait_until((here / "gate").exists)

hvd.init()
state = hvd.elastic.State(step=0, checkpoint_dir=str(here / "kept"), checkpoint_every=100000)


@hvd.elastic.run
def train(state):
    print(f"begins at {state.step} of {hvd.size()}", flush=True)
    while True:
        if state.step == HELD and not (here / "killed").exists():
            print(f"rank {hvd.rank()} holds {os.getpid()}", flush=True)
            wait_until((here / "killed").exists)
        hvd.allreduce(numpy.ones(1), name="x")
        state.step += 1
        state.commit()


train(state)
