"""A training that commits after each step until there is a file `end`. With a second argument it writes checkpoints there."""

import sys
from pathlib import Path

import numpy

import horovod.numpy as hvd

here = Path(sys.argv[1])
hvd.init()
state = hvd.elastic.State(
    weights=numpy.zeros(8, numpy.float32), step=0, checkpoint_dir=sys.argv[2] if len(sys.argv) > 2 else None
)


@hvd.elastic.run
def train(state):
    print(f"begins at {state.step} of {hvd.size()}", flush=True)
    while not hvd.broadcast_object((here / "end").exists(), 0):
        state.weights += hvd.allreduce(numpy.ones(8, numpy.float32), op=hvd.Average)
        state.step += 1
        state.commit()


train(state)
print("ends", flush=True)
