"""Checkpoints of a TorchState: files, damage, and starting again from them. In one process."""

import os
import threading

import pytest
import torch

import horovod.torch as hvd
from horovod.common import commits
from horovod.torch.elastic import checkpoint_file
from horovod.torch.elastic.checkpoints import Checkpoints
from test_torch_elastic import assert_equal, snapshot, step, training

VALUES = {"epoch": 3, "name": "x", "rate": 0.1, "odd": {1: (None, [float("inf")])}, "set": {1, 2}}
TREES = {
    "model": {
        "weight": torch.arange(6.0).reshape(2, 3),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "none": torch.empty(0, 4),
        "scalar": torch.tensor(7),
        "mask": torch.tensor([True, False]),
        "turned": torch.arange(6).reshape(2, 3).t(),
    }
}


@pytest.fixture
def new_job(monkeypatch):
    """Makes this process one that knows of no commit, as often as it is called."""

    def forget():
        monkeypatch.setattr(commits, "_newest", 0)

    forget()
    return forget


def write(path, commit=5):
    with open(path, "wb") as file:
        checkpoint_file.write(file, commit, VALUES, TREES)


def names(folder):
    return sorted(os.listdir(folder))


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


def test_file_gives_back_what_was_written(tmp_path):
    path = str(tmp_path / "a")
    write(path)
    found = checkpoint_file.read(path)
    assert (found.commit, found.values) == (5, VALUES)
    assert_equal(found.trees, TREES)
    for name, tensor in TREES["model"].items():
        assert found.trees["model"][name].dtype == tensor.dtype


def test_each_damage_is_noticed(tmp_path):
    path = tmp_path / "a"
    write(str(path))
    whole = path.read_bytes()
    used = [i for i in range(len(whole)) if whole[i] != 0]  # the rest may be padding
    damaged = [whole[:size] for size in (0, 10, 24, 100, len(whole) - 1)] + [whole + b"x"]
    for position in used[::7] + used[-3:]:
        bad = bytearray(whole)
        bad[position] ^= 1
        damaged.append(bytes(bad))
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(checkpoint_file.Damaged):
            checkpoint_file.read(str(path))


def test_newest_two_are_kept(tmp_path, new_job):
    state = state_in(tmp_path, every=2)
    train(state, 7)
    assert names(tmp_path) == ["checkpoint-4.hvd", "checkpoint-6.hvd"]


def test_job_starts_again_from_the_newest(tmp_path, new_job, capfd):
    state = state_in(tmp_path)
    train(state, 4)
    committed = snapshot(state.model, state.optimizer)
    new_job()
    again = state_in(tmp_path)
    seen = []

    @hvd.elastic.run
    def go_on(state):
        seen.append((state.batch, state.sampler.processed_num, commits.newest()))
        assert_equal(snapshot(state.model, state.optimizer), committed)
        train(state, 1)

    go_on(again)
    assert seen == [(4, 4, 4)]
    assert names(tmp_path) == ["checkpoint-4.hvd", "checkpoint-5.hvd"]
    assert capfd.readouterr().err.splitlines() == [
        "Horovod: going on from commit 4, checkpoint {}".format(tmp_path / "checkpoint-4.hvd")
    ]
    # The same as a training that went on all the time.
    train(state, 1)
    assert_equal(snapshot(state.model, state.optimizer), snapshot(again.model, again.optimizer))


def test_damaged_one_is_skipped_with_a_line(tmp_path, new_job, capfd):
    train(state_in(tmp_path), 3)
    newest = tmp_path / "checkpoint-3.hvd"
    newest.write_bytes(newest.read_bytes()[:-5])
    (tmp_path / ".checkpoint-9.hvd.tmp").write_bytes(b"half")
    new_job()
    state = state_in(tmp_path)
    state._sync_in_loop()
    assert state.batch == 2 and commits.newest() == 2
    skipped, taken = capfd.readouterr().err.splitlines()
    assert skipped.startswith("Horovod: checkpoint {} is skipped: ".format(newest))
    assert skipped.endswith("bytes are there") and "from commit 2" in taken
    assert names(tmp_path) == ["checkpoint-2.hvd", "checkpoint-3.hvd"]


def test_good_ones_are_kept_beside_newer_damaged_ones(tmp_path, new_job):
    for number in (7, 8):
        (tmp_path / "checkpoint-{}.hvd".format(number)).write_bytes(b"damaged")
    train(state_in(tmp_path), 3)
    assert names(tmp_path) == ["checkpoint-{}.hvd".format(n) for n in (2, 3, 7, 8)]


def test_checkpoint_of_another_model_is_an_error(tmp_path, new_job):
    train(state_in(tmp_path), 1)
    new_job()
    other = hvd.elastic.TorchState(torch.nn.Linear(5, 5), checkpoint_dir=str(tmp_path))
    with pytest.raises(ValueError, match="checkpoint-1.hvd does not fit this state: "):
        other.sync()


def test_what_can_not_be_written_is_one_line(tmp_path, new_job, capfd):
    folder = tmp_path / "a"
    state = state_in(folder)
    folder.rmdir()
    train(state, 3)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("Horovod: checkpoint ") and "can't be written: No such file" in line
    folder.mkdir()
    train(state, 1)
    assert names(folder) == ["checkpoint-4.hvd"]


def test_value_that_can_not_be_pickled_is_one_line(tmp_path, new_job, capfd):
    state = state_in(tmp_path)
    state._checkpoints.offer(1, {"lock": threading.Lock()}, {})
    state._checkpoints.wait()
    assert len(capfd.readouterr().err.splitlines()) == 1 and names(tmp_path) == []


def test_bad_arguments(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        state_in(tmp_path / "file" / "a")
    for every in (0, -1, 1.5, "3", True):
        with pytest.raises(ValueError, match="checkpoint_every must be a positive number"):
            state_in(tmp_path, every=every)


def test_commits_during_a_write_do_not_change_what_is_written(tmp_path, new_job, monkeypatch):
    started, go_on = threading.Event(), threading.Event()
    real = checkpoint_file.write

    def slow(*args):
        started.set()
        assert go_on.wait(100)
        real(*args)

    monkeypatch.setattr(checkpoint_file, "write", slow)
    state = state_in(tmp_path)
    step(state.model, state.optimizer)
    state.batch = 1
    state.commit()
    committed = snapshot(state.model, state.optimizer)
    assert started.wait(100)
    for _ in range(4):  # none of them waits, or starts another
        step(state.model, state.optimizer)
        state.batch += 1
        state.commit()
    go_on.set()
    state._checkpoints.wait()
    assert names(tmp_path) == ["checkpoint-1.hvd"]
    found = checkpoint_file.read(str(tmp_path / "checkpoint-1.hvd"))
    assert found.values["batch"] == 1
    assert_equal(found.trees["model"], dict(committed[0]))
    assert_equal(found.trees["optimizer"]["state"], committed[1])


def test_nothing_there_is_no_checkpoint(tmp_path, capfd):
    assert Checkpoints(str(tmp_path / "new"), 1).load_newest() is None
    assert capfd.readouterr().err == ""
