"""A script that a scheduler warns: it says each notice, and at SIGTERM or SIGHUP it agrees with the others before it saves.

python scheduler_signals.py FOLDER
"""

import signal
import sys
from pathlib import Path

import numpy

import horovod.numpy as hvd

folder = Path(sys.argv[1])
stopping = False


def stop(number, frame):
    global stopping
    stopping = True


def notice(number, frame):
    with open(folder / f"notices{hvd.rank()}", "a") as file:
        file.write(f"{signal.Signals(number).name}\n")


for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
    signal.signal(number, notice)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, stop)
hvd.init()
step = 0
while hvd.allreduce(numpy.float32([stopping or (folder / "end").exists()]), name="stop", op=hvd.Sum)[0] == 0:
    step += 1
    print(f"step {step}", flush=True)
steps = hvd.allgather(numpy.int64([step]), name="steps")
(folder / f"saved{hvd.rank()}").write_text(str(int(steps.min())))
