"""horovod.run of a function that never returns, on the hosts that a script finds."""

import signal
import subprocess
import sys

import horovod


def hold():
    import numpy

    import horovod.numpy as hvd

    hvd.init()
    hvd.allreduce(numpy.ones(1000), name="gradient")
    child = subprocess.Popen(["sleep", "100000"])
    print("holding", child.pid, flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    horovod.run(hold, num_proc=2, min_num_proc=2, host_discovery_script=sys.argv[1])
