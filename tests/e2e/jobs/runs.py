"""Folds: elastic runs one after another, each with a model of its own. In the second and the third, workers kill themselves once, after their fifth
commit. Prints where each fold begins, and at the end what the folds have returned and what is in the models.

runs.py FOLDER WHO [CHECKPOINTS]   WHO: the ranks that die, as in 0,1; CHECKPOINTS: the folder for checkpoints
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError

STEPS = 10
here, victims = Path(sys.argv[1]), sys.argv[2].split(",")
options = {"checkpoint_dir": sys.argv[3]} if len(sys.argv) > 3 else {}
hvd.init()


def say(**what):
    print(json.dumps(what), flush=True)


def die_once(state, fold):
    flag = here / f"died-{fold}"
    if fold == 0 or state.step != 5 or flag.exists():
        return
    with contextlib.suppress(HorovodInternalError):  # of ranks that were killed
        hvd.barrier()  # all have looked
    if str(hvd.rank()) in victims:
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@hvd.elastic.run
def train(state, fold):
    say(fold=fold, step=state.step, rank=hvd.rank())
    while state.step < STEPS:
        state.model.weight.data += hvd.allreduce(torch.ones(1) * (fold + 1), name="step")
        state.step += 1
        state.commit()
        if state._checkpoints is not None:
            state._checkpoints.wait()  # each commit is written
        die_once(state, fold)
    return state.model.weight.item()


def cross_validate():
    for fold in range(3):
        model = torch.nn.Linear(1, 1, bias=False)
        model.weight.data.zero_()
        state = hvd.elastic.TorchState(model, torch.optim.SGD(model.parameters(), 0.1), step=0, **options)
        yield train(state, fold), model.weight.item()


found = list(cross_validate())
say(found=found, rank=hvd.rank())
