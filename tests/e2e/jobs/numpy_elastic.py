"""An elastic training with numpy alone, where torch can't be imported. At step 5 rank 1 kills itself, once. Prints what is committed in the end."""

import json
import os
import signal
import sys
from pathlib import Path


class Refusal:
    """Finds no framework."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "tensorflow", "jax"):
            raise ImportError(f"{name} is not to be imported")


sys.meta_path.insert(0, Refusal())

import numpy  # noqa: E402

import horovod.numpy as hvd  # noqa: E402

STEPS, KILLED_AT = 10, 5
killed = Path(sys.argv[1]) / "killed"

hvd.init()
state = hvd.elastic.State(weights=numpy.zeros(3), sampler=hvd.elastic.ElasticSampler(range(1000)), seen=[], step=0)


@hvd.elastic.run
def train(state):
    while state.step < STEPS:
        batch = list(state.sampler)[state.step : state.step + 1]
        state.weights += hvd.allreduce(numpy.full(3, state.step), op=hvd.Sum)
        state.seen.append([int(item) for item in hvd.allgather(batch)])
        if hvd.rank() == 1 and state.step == KILLED_AT and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        state.step += 1
        state.commit()


train(state)
everything = hvd.allgather_object((state.weights.tolist(), state.seen, state.step))
if hvd.rank() == 0:
    assert "torch" not in sys.modules
    print(json.dumps(everything), flush=True)
