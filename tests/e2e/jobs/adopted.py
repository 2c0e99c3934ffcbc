"""A process that takes part in jobs by adoption: in one after another, whose addresses and token files are the arguments. What it does in each is
said by ADOPTED: "end" after a sum, "raise", "wait" in a collective that the others do not call, or "train" without end in an elastic job."""

import os
import sys
import threading
import time

import numpy

import horovod.numpy as hvd
from horovod.runner._adoption import Adoption

told = threading.Event()


def stop(seconds):
    print(f"told to stop within {seconds:g} s", flush=True)
    told.set()


def work():
    hvd.init()
    total = hvd.allreduce(numpy.ones(3), op=hvd.Sum)
    print(f"rank {hvd.rank()} of {hvd.size()} local {hvd.local_rank()} sum {total[0]:g} pid {os.getpid()}", flush=True)
    what = os.environ["ADOPTED"]
    if what == "raise":
        raise ValueError("on purpose")
    if what == "wait":
        hvd.allreduce(numpy.ones(3), name="alone")
    while what == "train" and not told.is_set():
        time.sleep(0.01)  # between steps


for address, token_file in zip(sys.argv[1::2], sys.argv[2::2]):
    before = dict(os.environ)
    with open(token_file) as file:
        adoption = Adoption(address, file.read(), host=os.environ["NAME"], on_stop=stop)
    adoption.wait_for_start(60)
    failure = None
    try:
        work()
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        failure = error
    print(f"job ended with {adoption.exit(3 if failure else 0, error=failure)}", flush=True)
    changed = {name for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)}
    print(f"left behind: {sorted(changed)}", flush=True)
