"""Trains until one rank fails; the others continue, and must be stopped.

fail.py raise|exit|kill|segfault RANK
"""

import ctypes
import os
import signal
import sys
import time

import numpy

import horovod.numpy as hvd


def fail(how):
    print(f"about to {how}", file=sys.stderr)
    print(f"fails at {time.time()}", flush=True)
    if how == "raise":
        raise ValueError("the loss is not a number")
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    ctypes.string_at(0)


hvd.init()
for step in range(10**9):
    hvd.allreduce(numpy.ones(1000), name="gradient")
    if step == 20 and hvd.rank() == int(sys.argv[2]):
        fail(sys.argv[1])
