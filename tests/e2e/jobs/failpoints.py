"""A training of tests/e2e/failpoints_test.py: a commit at each step. It logs the worlds that it is in, and each commit() that returned.

    failpoints.py DIRECTORY HOST

It waits before hvd.init() while DIRECTORY/gate-HOST is there, and ends when rank 0 finds DIRECTORY/end. A line of the log is as
tools/faults/check.py reads it; one about a world has five words: `world`, its number, the rank, the size, the step.
"""

import os
import random
import sys
import time
from pathlib import Path

import numpy

PAUSE_S = 0.01  # a step's time, beside that of the operations

directory, host = Path(sys.argv[1]), sys.argv[2]
log = open(directory / "logs" / f"{host}.{os.getpid()}", "a", buffering=1)  # noqa: SIM115
while (directory / f"gate-{host}").exists():
    time.sleep(PAUSE_S)

import horovod.numpy as hvd  # noqa: E402 - what waits at the gate is ready soon
from horovod import _ffi  # noqa: E402

hvd.init()
state = hvd.elastic.State(
    checkpoint_dir=str(directory / "checkpoints"), checkpoint_every=5, weights=numpy.zeros(50000), step=0, token=0
)


@hvd.elastic.run
def train(state):
    log.write(f"world {_ffi.query('epoch')} {hvd.rank()} {hvd.size()} {state.step}\n")
    ends = False
    while not ends:
        asks = hvd.rank() == 0 and (directory / "end").exists()
        drawn, ended = hvd.allreduce(numpy.array([random.getrandbits(20), asks]), name="draw", op=hvd.Sum)
        ends = bool(ended)
        state.weights += hvd.allreduce(numpy.ones(50000), name="ones", op=hvd.Average)
        state.token = (state.token * 31 + int(drawn)) % (1 << 61)
        state.step += 1
        assert (state.weights == state.step).all(), f"{state.weights} after {state.step} steps"
        state.commit()
        log.write(f"{time.monotonic():.6f} returned {state.step} {state.token}\n")
        time.sleep(PAUSE_S)
    return state.step


print(f"ends after {train(state)} steps", flush=True)
