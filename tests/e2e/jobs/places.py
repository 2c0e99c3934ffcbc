"""Prints this worker's ranks in each of its worlds as a line of JSON, and trains until the file END is there.

places.py END
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy

import horovod.numpy as hvd

QUERIES = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
PACE = 0.01  # s a step: several of these run on one machine
end = Path(sys.argv[1])

hvd.init()
state = hvd.elastic.State(step=0)


@hvd.elastic.run
def train(state):
    place = {name: getattr(hvd, name)() for name in QUERIES}
    place["started"] = [int(os.environ[f"HOROVOD_{name.upper()}"]) for name in ("LOCAL_RANK", "LOCAL_SIZE")]
    print("place", json.dumps({**place, "host": os.environ["HOROVOD_HOSTNAME"], "pid": os.getpid()}), flush=True)
    while hvd.allreduce(numpy.array([float(end.exists())]), op=hvd.Max, name="end")[0] == 0:
        state.step += 1
        state.commit()
        time.sleep(PACE)


train(state)
