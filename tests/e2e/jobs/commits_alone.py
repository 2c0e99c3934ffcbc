"""A rank that commits each step, and logs that in a file of its host, until a file orders it to end. Prints a line after five commits.

commits_alone.py DIRECTORY
"""

import os
import sys
from pathlib import Path

import numpy

import horovod.numpy as hvd

hvd.init()
log = os.open(Path(sys.argv[1]) / os.environ["HOROVOD_HOSTNAME"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
state = hvd.elastic.State(step=0)


@hvd.elastic.run
def train(state):
    commits = 0
    while not (Path(sys.argv[1]) / "end").exists():
        hvd.allreduce(numpy.ones(1), name="x")
        state.step += 1
        state.commit()
        os.write(log, b"%d\n" % state.step)
        commits += 1
        if commits == 5:
            print("five commits", flush=True)


train(state)
