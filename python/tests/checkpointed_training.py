"""The training of elastic_training.py with checkpoints, for tests of these."""

import contextlib
import os
import pathlib

import horovod.torch as hvd
from elastic_training import step, training
from horovod import _ffi
from horovod.elastic import checkpoint_folder, checkpoints, commits, folder_lock

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
    """Trains this number of steps; each is committed, and written if it is due."""
    for _ in range(steps):
        step(state.model, state.optimizer)
        state.batch += 1
        state.sampler.record_batch(0, 1)
        state.commit()
        state._checkpoints.wait()


def as_processes(monkeypatch):
    """A fixture's value: a function that makes what follows that of another process, of `job` and in its world number `epoch`."""

    def become(job="a", epoch=1):
        monkeypatch.setattr(commits, "_newest", 0)
        monkeypatch.setattr(folder_lock, "_held", {})
        monkeypatch.setattr(checkpoints, "_newest_worlds", {})
        monkeypatch.setattr(checkpoint_folder, "_LONE_JOB", job)
        query = _ffi.query
        monkeypatch.setattr(_ffi, "query", lambda what: epoch if what == "epoch" else query(what))

    locked = []
    sign = folder_lock._sign

    def note(descriptor, job):
        locked.append((descriptor, os.fstat(descriptor)))
        sign(descriptor, job)

    monkeypatch.setattr(folder_lock, "_sign", note)
    monkeypatch.setattr(folder_lock, "PATIENCE_S", 0.0)
    monkeypatch.setattr(_ffi, "confirm_world", lambda: None)
    monkeypatch.setattr(checkpoints, "_MAX_DOUBT_S", 0.0)
    become()
    yield become
    for descriptor, file in locked:
        with contextlib.suppress(OSError):  # closed by the test
            if os.path.samestat(os.fstat(descriptor), file):
                os.close(descriptor)
