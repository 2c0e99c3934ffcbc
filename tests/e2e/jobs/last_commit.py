"""A training of plain values that commits HELD steps and goes on when the file `go on` is there. Prints when a process is initialized, where
it begins, and the commit at which it waits."""

import json
import os
import sys
from pathlib import Path

import horovod.torch as hvd
from waiting import wait_until

HELD, STEPS = 5, 7
here = Path(sys.argv[1])


def say(**what):
    print(json.dumps({**what, "pid": os.getpid()}), flush=True)


hvd.init()
say(initialized=True)
state = hvd.elastic.ObjectState(step=0)


@hvd.elastic.run
def train(state):
    say(begins=state.step)
    while state.step < STEPS:
        if state.step >= HELD and not (here / "go on").exists():
            say(waits=state.step)
            wait_until((here / "go on").exists)
        state.step += 1
        state.commit()


train(state)
say(ends=state.step)
