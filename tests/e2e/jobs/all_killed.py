"""A training that keeps plain values only. The first time that it gets to step 10 every worker kills itself. Prints where it begins, and its
steps."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError

KILLED_AT, STEPS = 10, 15
here, kind = Path(sys.argv[1]), sys.argv[2]


class Mine(hvd.elastic.ObjectState):
    """What a user may derive."""

    def commit(self):
        self.history.append(self.step)
        super().commit()


hvd.init()
state = (Mine if kind == "Mine" else hvd.elastic.ObjectState)(step=0, total=0.0, history=[])


@hvd.elastic.run
def train(state):
    if hvd.rank() == 0:
        print(json.dumps({"begins": state.step, "total": state.total, "history": state.history}), flush=True)
    while state.step < STEPS:
        state.total += hvd.allreduce(torch.ones(1) * state.step, name="step").item()
        state.step += 1
        state.commit()
        if state.step == KILLED_AT and not (here / "killed").exists():
            with contextlib.suppress(HorovodInternalError):  # of ranks that were killed
                hvd.barrier()  # all have committed, and looked
            if hvd.rank() == 0:
                (here / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)


train(state)
if hvd.rank() == 0:
    print(json.dumps({"ends": state.step, "total": state.total}), flush=True)
