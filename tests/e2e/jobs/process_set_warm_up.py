"""Adds process sets before the first run. Asks for a third slot in the file HOSTS, and ends after three steps with it.

    process_set_warm_up.py HOSTS again|kept|once

`again`: a set of the last rank is used and removed, before the run and in each reset callback. `kept`: a set of rank 0 is added at both places.
`once`: it is added before the run only.
"""

import sys
from pathlib import Path

import torch

import horovod.torch as hvd

hvd.init(process_sets="dynamic")
mode = sys.argv[2]


def warm_up():
    global kept
    if mode != "again":
        kept = hvd.add_process_set([0])
        return
    last = hvd.add_process_set([hvd.size() - 1])
    if last.included():
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=last).item() == 1
    assert hvd.remove_process_set(last)


warm_up()
state = hvd.elastic.TorchState(total=0.0, together=0)
if mode != "once":
    state.register_reset_callbacks([warm_up])


@hvd.elastic.run
def train(state):
    while state.together < 3:
        part = torch.ones(1)
        if mode != "again" and kept.included():
            part = hvd.allreduce(part, process_set=kept)
        state.total += hvd.allreduce(part).item()
        state.together += hvd.size() == 3
        state.commit()
        Path(sys.argv[1]).write_text("localhost:3\n")


train(state)
print(f"weights {state.total}")
