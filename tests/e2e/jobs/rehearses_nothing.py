"""A script that tries to have itself harmed, in a job that is no rehearsal; prints what it has found of a rehearsal."""

import os

os.environ["HOROVOD_INJECT"] = "campaign.json"
import horovod.numpy as hvd
from horovod import _ffi

hvd.init()
state = hvd.elastic.State(step=0)


@hvd.elastic.run
def train(state):
    for _ in range(20):
        state.step += 1
        state.commit()


train(state)
opened = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)]
print("disk is full:", _ffi.disk_is_full(), "pages:", [name for name in opened if "hvd-faults" in name], flush=True)
