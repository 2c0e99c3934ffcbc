"""An elastic training that uses torch.distributed beside Horovod: a group for each world. Loses its last rank once, and continues with a new one."""

import json
import os
import signal

import torch
import torch.distributed as dist

import horovod.torch as hvd

hvd.init()


@hvd.elastic.run
def train(state):
    os.environ.update(hvd.torch_distributed_env())
    dist.init_process_group("gloo")
    try:
        total = torch.tensor([float(hvd.rank())])
        dist.all_reduce(total)
        told = {"world": state.worlds, "rank": hvd.rank(), "size": hvd.size(), "total": total.item()}
        assert (dist.get_rank(), dist.get_world_size()) == (hvd.rank(), hvd.size())
        print(
            json.dumps({**told, "group": os.environ["GROUP_RANK"], "groups": os.environ["GROUP_WORLD_SIZE"]}),
            flush=True,
        )
        state.worlds += 1
        state.commit()
        if state.worlds == 1 and hvd.rank() == hvd.size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        while state.worlds < 2 or hvd.size() < 3:
            hvd.allreduce(torch.ones(1))
            state.commit()
    finally:
        dist.destroy_process_group()


train(hvd.elastic.ObjectState(worlds=0))
