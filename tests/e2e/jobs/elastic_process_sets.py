"""Trains with process sets while rank 2 of the first world is lost and replaced: process sets by a rule, of survivors, and of the one that is lost.

Rank 0 prints a line of JSON for each step: what each set was then. Ends some steps after the job has grown again. `inside`: sets are made in the
training function, as in unchanged Horovod scripts, else before.
"""

import json
import os
import signal
import sys

import torch

import horovod.torch as hvd
from horovod import _ffi

INSIDE = "inside" in sys.argv
DIE_AT, STEPS_AFTERWARDS = 4, 4

by_rule = hvd.ProcessSet(rule=lambda size: range(1, size))
survivors = hvd.ProcessSet([0, 1])
of_the_lost = hvd.ProcessSet([0, 2])
if INSIDE:
    hvd.init(process_sets="dynamic")
else:
    hvd.init(process_sets=[by_rule, survivors, of_the_lost])

model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01),
    named_parameters=model.named_parameters(),
    process_set=hvd.global_process_set if INSIDE else by_rule,
)


def sum_of_ranks(process_set):
    """What the members' ranks add up to, on every rank; or why it can't be had."""
    try:
        total = torch.zeros(1)
        if process_set.included():
            total = hvd.allreduce(torch.full((1,), float(hvd.rank())), op=hvd.Sum, process_set=process_set)
    except ValueError as error:
        return str(error)
    assert total.item() == (sum(process_set.ranks) if process_set.included() else 0)
    return process_set.ranks


@hvd.elastic.run
def train(state):
    sets = {"by_rule": by_rule, "survivors": survivors, "of_the_lost": of_the_lost}
    if INSIDE:
        sets = {"by_rule": hvd.add_process_set(list(range(1, hvd.size())))}
    while state.afterwards < STEPS_AFTERWARDS:
        if _ffi.query("epoch") == 1 and state.step == DIE_AT and hvd.rank() == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        seen = {name: sum_of_ranks(process_set) for name, process_set in sets.items()}
        optimizer.zero_grad()
        model(torch.ones(1, 2) * (1 + hvd.rank())).sum().backward()
        optimizer.step()
        state.step += 1
        state.afterwards += _ffi.query("epoch") > 2 and hvd.size() == 3
        if hvd.rank() == 0:
            print(
                json.dumps({"step": state.step, "world": _ffi.query("epoch"), "size": hvd.size(), **seen}), flush=True
            )
        state.commit()


train(hvd.elastic.TorchState(model, optimizer, step=0, afterwards=0))
