"""A training that commits after each step until there is a file `end`. If GATE names a file, the process waits for it before it takes part.
Prints when it is about to take part, and where it begins."""

import os
import sys
from pathlib import Path

import horovod.torch as hvd
from waiting import wait_until

here = Path(sys.argv[1])
print("starts", flush=True)
wait_until(lambda: "GATE" not in os.environ or (here / os.environ["GATE"]).exists())
hvd.init()
state = hvd.elastic.ObjectState(step=0)


@hvd.elastic.run
def train(state):
    print(f"begins at {state.step} of {hvd.size()}", flush=True)
    while not hvd.broadcast_object((here / "end").exists(), 0):
        state.step += 1
        state.commit()


train(state)
