"""A worker in the middle of its work, with a child process, that never ends by itself; with an argument it ignores SIGTERM and SIGINT, as its child
does."""

import signal
import subprocess
import sys

import numpy

import horovod.numpy as hvd

if len(sys.argv) > 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "100000"])
hvd.init()
hvd.allreduce(numpy.ones(1000), name="gradient")
print("holding", flush=True)
while True:
    signal.pause()
