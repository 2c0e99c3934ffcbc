"""Two ranks; rank 1 keeps the other waiting once: `sleep`s until a file `end` is there, `spin`s without end, or hangs in a `native` function
that holds Python's lock. Elastic jobs continue with its replacement, and print their results."""

import json
import os
import sys
import time

import numpy

import horovod.numpy as hvd
from horovod import _ffi

HOW = sys.argv[1]
STEPS = 4


def sleep():
    while not os.path.exists("end"):
        time.sleep(0.1)  # HERE: sleep


def spin():
    while True:
        pass  # HERE: spin


def native():
    sum(range(1 << 62))  # HERE: native


def hold_up():
    {"sleep": sleep, "spin": spin, "native": native}[HOW]()


hvd.init()


@hvd.elastic.run
def train(state):
    while state.step < STEPS:
        if state.step == 2 and hvd.rank() == 1 and _ffi.query("epoch") == 1:
            hold_up()
        hvd.allreduce(numpy.ones(1), name="step")
        state.step += 1
        state.commit()


if "elastic" in sys.argv:
    state = hvd.elastic.State(step=0)
    train(state)
    if hvd.rank() == 0:
        print(json.dumps({"steps": state.step, "world": _ffi.query("epoch"), "size": hvd.size()}), flush=True)
else:
    hvd.allreduce(numpy.ones(1), name="first")
    if hvd.rank() == 1:
        hold_up()
    hvd.allreduce(numpy.ones(1), name="second")
    print("done", flush=True)
