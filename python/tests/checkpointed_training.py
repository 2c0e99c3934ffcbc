"""The training of elastic_training.py with checkpoints, for tests of these."""

import os
import pathlib

import horovod.torch as hvd
from elastic_training import step, training

DATA = pathlib.Path(__file__).resolve().parent / "data"


def names(folder):
    return sorted(name for name in os.listdir(folder) if name != ".lock")


def state_in(folder, every=1):
    model, optimizer = training()
    sampler = hvd.elastic.ElasticSampler(range(100))
    return hvd.elastic.TorchState(
        model,
        optimizer,
        sampler=sampler,
        batch=0,
        checkpoint_dir=str(folder),
        checkpoint_every=every,
    )


def train(state, steps):
    """So many steps; each is committed, and written if it is its turn."""
    for _ in range(steps):
        step(state.model, state.optimizer)
        state.batch += 1
        state.sampler.record_batch(0, 1)
        state.commit()
        state._checkpoints.wait()
