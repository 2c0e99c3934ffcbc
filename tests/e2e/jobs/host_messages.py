"""A script that waits for a change of the hosts as Horovod's own elastic scripts do, and then commits. Prints the sizes of its worlds."""

import json

import horovod.torch as hvd
from waiting import wait_until

hvd.init()
state = hvd.elastic.ObjectState(step=0)


@hvd.elastic.run
def train(state):
    print(json.dumps({"size": hvd.size(), "quiet": state._host_messages.empty()}), flush=True)
    if hvd.size() == 1:
        wait_until(lambda: not state._host_messages.empty())
        state.commit()
        raise SystemExit("the commit was not interrupted")


train(state)
