"""A training in which one worker raises the same error twice: before its first commit, and COMMITS commits later. Prints where each process
begins, and the end."""

import sys
from pathlib import Path

import horovod.torch as hvd

COMMITS = 20
here = Path(sys.argv[1])


def raise_once(name):
    if hvd.rank() == 0 and not (here / name).exists():
        (here / name).touch()
        raise OSError("the file server is away")


hvd.init()
state = hvd.elastic.ObjectState(step=0)


@hvd.elastic.run
def train(state):
    print(f"begins at {state.step}", flush=True)
    if state.step == 0:
        raise_once("first")
    while state.step < COMMITS:
        state.step += 1
        state.commit()
    raise_once("again")
    while state.step < COMMITS + 5:
        state.step += 1
        state.commit()


train(state)
print(f"ends at {state.step}", flush=True)
