"""A process of a launch: sums over all ranks, then does what its argument says: nothing, or rank 1 fails by "raise", "exit" or "kill" while others
wait for it in a collective; or "twice": it joins again."""

import json
import os
import sys

import numpy

import horovod.numpy as hvd

what = sys.argv[1] if len(sys.argv) > 1 else ""

hvd.init()
total = hvd.allreduce(numpy.ones(2), op=hvd.Sum, name="all")[0]
place = {
    name: getattr(hvd, name)() for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
}
said = {
    name: os.environ.get(name)
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURMD_NODENAME", "OMPI_COMM_WORLD_RANK")
}
print(json.dumps({**place, **said, "total": total, "pid": os.getpid()}) + "\n", end="", flush=True)
if hvd.rank() == 1:
    if what == "raise":
        raise ValueError("on purpose")
    if what == "exit":
        sys.exit(7)
    if what == "kill":
        os.kill(os.getpid(), 9)
if what == "twice":
    hvd.shutdown()
    hvd.init()
if what:
    hvd.allreduce(numpy.ones(2), op=hvd.Sum, name="more")
