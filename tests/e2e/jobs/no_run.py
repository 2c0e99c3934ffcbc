"""Trains in an elastic job without hvd.elastic.run, and commits at each step. Rank 1 raises once, at step 3."""

import sys
from pathlib import Path

import torch

import horovod.torch as hvd

failed = Path(sys.argv[1]) / "failed"
hvd.init()
sampler = hvd.elastic.ElasticSampler(range(100))
state = hvd.elastic.TorchState(sampler=sampler, step=0)
while state.step < 5:
    hvd.allreduce(torch.ones(1), name="step")
    state.sampler.record_batch(state.step, 1)
    state.step += 1
    state.commit()
    if state.step == 3 and hvd.rank() == 1 and not failed.exists():
        failed.touch()
        raise ValueError("bad sample 17")
