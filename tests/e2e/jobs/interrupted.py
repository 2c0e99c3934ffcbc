"""Rank 0 waits in collectives for rank 1, which does not come before signals have reached rank 0. The argument is a FIFO."""

import os
import signal
import sys
import threading

import torch

import horovod.torch as hvd

hvd.init()


class Alarm(Exception):
    pass


def raise_alarm(*_):
    raise Alarm


def wait_and_signal(what, number, wait):
    """Waits in `wait()` until the signal is there, and says what came of it."""
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    try:
        wait()
    except (KeyboardInterrupt, Alarm) as interruption:
        print(what, type(interruption).__name__, flush=True)
    else:
        print(what, "was done first", flush=True)


if hvd.rank() == 0:
    signal.signal(signal.SIGALRM, raise_alarm)
    late = hvd.allreduce_async(torch.ones(3), name="late", op=hvd.Sum)
    wait_and_signal("run", signal.SIGINT, lambda: hvd.allreduce_(torch.ones(1 << 20), name="in place"))
    wait_and_signal("submit", signal.SIGINT, lambda: hvd.broadcast(torch.ones(2), 1, name="from 1"))
    wait_and_signal("barrier", signal.SIGALRM, hvd.barrier)
    wait_and_signal("synchronize", signal.SIGALRM, lambda: hvd.synchronize(late))
    signal.signal(signal.SIGALRM, lambda *_: print("a handler that returns", flush=True))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGALRM)).start()
    open(sys.argv[1], "w").close()
    # It waits on, and what was interrupted can be waited for again.
    assert torch.equal(hvd.synchronize(late), torch.full((3,), 2.0))
else:
    open(sys.argv[1]).close()
    for tensor, name in ((torch.ones(3), "late"), (torch.ones(1 << 20), "in place")):
        hvd.allreduce_(tensor, name=name, op=hvd.Sum if name == "late" else hvd.Average)
    hvd.broadcast(torch.ones(2), 1, name="from 1")
    hvd.barrier()
assert hvd.allreduce(torch.ones(1), name="end", op=hvd.Sum).item() == 2
