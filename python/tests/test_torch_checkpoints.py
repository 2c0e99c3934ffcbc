"""Checkpoints of a TorchState: when they are written, which are kept, and starting again from them. In one process."""

import atexit
import errno
import os
import shutil
import threading

import pytest
import torch

import horovod.torch as hvd
from checkpointed_training import DATA, names, state_in, train
from elastic_training import assert_equal, snapshot, step
from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError
from horovod.elastic import checkpoint_file, checkpoint_folder, checkpoints, commit_protocol, commits
from horovod.elastic.checkpoints import Checkpoints
from horovod.elastic.loop import run_fn
from horovod.torch._loading import TREES as TORCH


@pytest.fixture(autouse=True)
def first_world(monkeypatch):
    """Files are named as of a job's first world, however many this process has had."""
    query = _ffi.query
    monkeypatch.setattr(_ffi, "query", lambda what: 1 if what == "epoch" else query(what))
    monkeypatch.setattr(checkpoints, "_newest_worlds", {})


@pytest.fixture
def new_job(monkeypatch):
    """Makes this process one that knows of no commit, as often as it is called."""

    def forget():
        monkeypatch.setattr(commits, "_newest", 0)

    forget()
    return forget


def test_job_continues_from_a_file_of_an_older_version(tmp_path, new_job, capfd):
    train(state_in(tmp_path), 2)
    for name in names(tmp_path):  # as they were called, beside which newer ones count
        os.rename(tmp_path / name, tmp_path / (name[:12] + ".hvd"))
    assert names(tmp_path) == ["checkpoint-1.hvd", "checkpoint-2.hvd"]
    old = (DATA / "checkpoint-format-1.hvd").read_bytes()
    (tmp_path / "checkpoint-5.hvd").write_bytes(old)
    capfd.readouterr()
    found = Checkpoints(TORCH, str(tmp_path), 1).load_newest()
    assert found.commit == 5 and "going on from commit 5" in capfd.readouterr().err
    os.remove(tmp_path / "checkpoint-5.hvd")
    new_job()
    state = state_in(tmp_path)
    state.sync()
    assert state.batch == 2
    commit_protocol.synchronize(state)
    train(state, 1)
    assert names(tmp_path) == ["checkpoint-2.hvd", "checkpoint-3-w1.hvd"]


def test_file_of_a_newer_version_is_skipped_with_a_line(tmp_path, capfd):
    newer = bytearray((DATA / "checkpoint-format-2.hvd").read_bytes())
    newer[8] = 4
    (tmp_path / "checkpoint-9-w9.hvd").write_bytes(newer)
    assert Checkpoints(TORCH, str(tmp_path), 1).load_newest() is None
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith("is skipped: it has format 4, this Horovod reads up to 3")


def test_header_that_could_not_be_read_is_not_written(tmp_path, new_job, monkeypatch, capfd):
    monkeypatch.setattr(checkpoint_file, "_MAX_HEADER", 20000)
    state = state_in(tmp_path)
    train(state, 1)
    state._checkpoints.offer(2, {"names": {str(n): "x" for n in range(1000)}}, {})
    state._checkpoints.wait()
    (line,) = capfd.readouterr().err.splitlines()
    assert "checkpoint 2 in " in line and "its header would have " in line
    assert "keep in tensors what is large" in line
    assert names(tmp_path) == ["checkpoint-1-w1.hvd"]
    train(state, 3)
    assert names(tmp_path) == ["checkpoint-3-w1.hvd", "checkpoint-4-w1.hvd"]


def test_newest_two_are_kept(tmp_path, new_job):
    state = state_in(tmp_path, every=2)
    train(state, 7)
    assert names(tmp_path) == ["checkpoint-4-w1.hvd", "checkpoint-6-w1.hvd"]


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
    assert names(tmp_path) == ["checkpoint-4-w1.hvd", "checkpoint-5-w1.hvd"]
    assert capfd.readouterr().err.splitlines() == [
        "Horovod: going on from commit 4, checkpoint {}".format(tmp_path / "checkpoint-4-w1.hvd")
    ]
    # The same as a training that went on all the time.
    train(state, 1)
    assert_equal(snapshot(state.model, state.optimizer), snapshot(again.model, again.optimizer))


@pytest.mark.parametrize("next_world, batches", [(2, [0, 1]), (3, [0, 3])])
def test_process_that_missed_a_world_looks_for_that_worlds_checkpoint(
    tmp_path, new_job, monkeypatch, next_world, batches
):
    """The world after its own can't have made commits without it: it does not even list the folder."""
    world, begun = [1], []
    query = _ffi.query
    monkeypatch.setattr(_ffi, "query", lambda what: world[0] if what == "epoch" else query(what))
    state = state_in(tmp_path)

    def reset():
        own = commits.newest_id()
        world[0] = 2
        others = state_in(tmp_path)
        others.batch = state.batch
        train(others, 2)
        world[0] = next_world
        monkeypatch.setattr(commits, "_newest", own)

    def go_on(state):
        begun.append(state.batch)
        if len(begun) == 1:
            train(state, 1)
            raise HorovodInternalError("a peer is lost")

    run_fn(go_on, reset)(state)
    assert begun == batches


def test_damaged_one_is_skipped_with_a_line(tmp_path, new_job, capfd):
    train(state_in(tmp_path), 3)
    newest = tmp_path / "checkpoint-3-w1.hvd"
    newest.write_bytes(newest.read_bytes()[:-5])
    (tmp_path / ".checkpoint-9.hvd.tmp").write_bytes(b"half")
    new_job()
    state = state_in(tmp_path)
    commit_protocol.synchronize(state)
    assert state.batch == 2 and commits.newest() == 2
    skipped, taken = capfd.readouterr().err.splitlines()
    assert skipped.startswith(f"Horovod: checkpoint {newest} is skipped: ")
    assert skipped.endswith("bytes are there") and "from commit 2" in taken
    assert names(tmp_path) == ["checkpoint-2-w1.hvd", "checkpoint-3-w1.hvd"]


def test_good_ones_are_kept_beside_newer_damaged_ones(tmp_path, new_job):
    for number in (7, 8):
        (tmp_path / f"checkpoint-{number}-w2.hvd").write_bytes(b"damaged")
    state = state_in(tmp_path)
    commit_protocol.synchronize(state)
    train(state, 3)
    expected = ["checkpoint-2-w3.hvd", "checkpoint-3-w3.hvd"]
    damaged = ["checkpoint-7-w2.hvd", "checkpoint-8-w2.hvd"]
    assert names(tmp_path) == expected + damaged


def test_checkpoint_of_another_model_is_an_error(tmp_path, new_job):
    train(state_in(tmp_path), 1)
    new_job()
    other = hvd.elastic.TorchState(torch.nn.Linear(5, 5), checkpoint_dir=str(tmp_path))
    with pytest.raises(ValueError, match=r"checkpoint-1-w1\.hvd does not fit this state: "):
        other.sync()


def test_what_can_not_be_written_is_one_line(tmp_path, new_job, capfd):
    folder = tmp_path / "a"
    state = state_in(folder)
    folder.rmdir()
    train(state, 3)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("Horovod: checkpoint 1 in ")
    assert "can't be written: No such file" in line
    folder.mkdir()
    train(state, 1)
    assert names(folder) == ["checkpoint-4-w1.hvd"]


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


class SlowDisk:
    """Files are written once `go_on` is set; `started` says that one is begun."""

    def __init__(self, monkeypatch):
        self.started, self.go_on = threading.Event(), threading.Event()
        real = checkpoint_file.write

        def write(*args, **kwargs):
            self.started.set()
            assert self.go_on.wait(100)
            real(*args, **kwargs)

        monkeypatch.setattr(checkpoint_file, "write", write)


@pytest.fixture
def slow_disk(monkeypatch):
    return SlowDisk(monkeypatch)


def test_commits_during_a_write_do_not_change_what_is_written(tmp_path, new_job, slow_disk):
    state = state_in(tmp_path)
    step(state.model, state.optimizer)
    state.batch = 1
    state.commit()
    committed = snapshot(state.model, state.optimizer)
    assert slow_disk.started.wait(100)
    for _ in range(4):  # none of them waits, or starts another
        step(state.model, state.optimizer)
        state.batch += 1
        state.commit()
    slow_disk.go_on.set()
    state._checkpoints.wait()
    assert names(tmp_path) == ["checkpoint-1-w1.hvd"]
    found = checkpoint_file.read(TORCH, str(tmp_path / "checkpoint-1-w1.hvd"))
    assert found.values["batch"] == 1
    assert_equal(found.trees["model"], dict(committed[0]))
    assert_equal(found.trees["optimizer"]["state"], committed[1])


def commit_during_a_write(state, slow_disk):
    """Makes commits 1 to 3; only the first gets its file at once."""
    for _ in range(3):
        step(state.model, state.optimizer)
        state.batch += 1
        state.commit()
        assert slow_disk.started.wait(100)
    slow_disk.go_on.set()


def test_last_commit_of_a_process_is_written_at_its_end(tmp_path, new_job, slow_disk, monkeypatch):
    ends = []
    monkeypatch.setattr(atexit, "register", ends.append)
    state = state_in(tmp_path)
    commit_during_a_write(state, slow_disk)
    committed = snapshot(state.model, state.optimizer)
    step(state.model, state.optimizer)  # without a commit
    (end,) = ends
    end()
    assert names(tmp_path) == ["checkpoint-1-w1.hvd", "checkpoint-3-w1.hvd"]
    found = checkpoint_file.read(TORCH, str(tmp_path / "checkpoint-3-w1.hvd"))
    assert found.values["batch"] == 3
    assert_equal(found.trees["model"], dict(committed[0]))


def test_save_without_commit_is_not_written_at_the_end(tmp_path, new_job, slow_disk):
    state = state_in(tmp_path)
    commit_during_a_write(state, slow_disk)
    state.save()
    state._checkpoints._finish()
    assert names(tmp_path) == ["checkpoint-1-w1.hvd"]


def test_last_commit_that_is_not_due_is_not_written_at_the_end(tmp_path, new_job):
    state = state_in(tmp_path, every=2)
    train(state, 3)
    state._checkpoints._finish()
    assert names(tmp_path) == ["checkpoint-2-w1.hvd"]


def test_last_commit_of_a_drained_process_is_written_at_its_end(tmp_path, new_job, monkeypatch):
    ends = []
    monkeypatch.setattr(atexit, "register", ends.append)
    monkeypatch.setattr(checkpoints.process, "released", True)
    state = state_in(tmp_path, every=100)
    train(state, 3)
    (end,) = ends
    end()
    assert names(tmp_path) == ["checkpoint-3-w1.hvd"]


def test_last_commit_is_one_of_the_world_that_made_it(tmp_path, new_job, slow_disk, monkeypatch):
    """The process has left it by the time the file is written."""
    state = state_in(tmp_path)
    query = _ffi.query
    monkeypatch.setattr(_ffi, "query", lambda what: 2 if what == "epoch" else query(what))
    commit_during_a_write(state, slow_disk)
    monkeypatch.setattr(_ffi, "query", lambda what: 0 if what == "epoch" else query(what))
    monkeypatch.setattr(_ffi, "confirm_world", lambda: None)
    state._checkpoints._finish()
    assert names(tmp_path) == ["checkpoint-1-w2.hvd", "checkpoint-3-w2.hvd"]


def test_last_commit_is_not_written_beside_one_that_hangs(tmp_path, new_job, slow_disk, monkeypatch):
    monkeypatch.setattr(checkpoints, "_MAX_WAIT_S", 0.0)
    state = state_in(tmp_path)
    for _ in range(2):
        state.commit()
        assert slow_disk.started.wait(100)
    state._checkpoints._finish()
    slow_disk.go_on.set()
    for thread in threading.enumerate():
        if thread.name == "hvd-checkpoint":
            thread.join(100)
    assert names(tmp_path) == ["checkpoint-1-w1.hvd"]


def test_nothing_there_is_no_checkpoint(tmp_path, capfd):
    assert Checkpoints(TORCH, str(tmp_path / "new"), 1).load_newest() is None
    assert capfd.readouterr().err == ""


def test_failures_that_continue_are_reported_again(tmp_path, new_job, capfd, monkeypatch):
    told = []
    monkeypatch.setattr(_ffi, "note_checkpoints", lambda *words: told.append(words))
    folder = tmp_path / "a"
    state = state_in(folder)
    train(state, 1)
    shutil.rmtree(folder)
    train(state, 12)
    first, tenth = [line for line in capfd.readouterr().err.splitlines() if "can't be written" in line]
    where = f"in {folder} can't be written: No such file or directory"
    assert first == f"Horovod: checkpoint 2 {where}"
    assert tenth == f"Horovod: checkpoint 11 {where} (10 in a row)"
    assert [(commit & 0xFF, failure) for commit, _, _, failure in told] == [
        (1, ""),
        (1, first.removeprefix("Horovod: ")),
        (1, tenth.removeprefix("Horovod: ")),
    ]
    folder.write_text("now a file")
    train(state, 1)
    assert "can't be written: Not a directory" in capfd.readouterr().err
    folder.unlink()
    folder.mkdir()
    train(state, 1)
    commit, age, place, failure = told[-1]
    assert (commit & 0xFF, place, failure) == (15, str(folder / "checkpoint-15-w1.hvd"), "")
    assert age >= 0


def test_process_that_takes_over_removes_what_a_killed_one_was_writing(tmp_path, new_job):
    train(state_in(tmp_path), 1)
    new_job()
    successor = state_in(tmp_path)
    (tmp_path / ".checkpoint-2-w1.hvd.1.00000000.tmp").write_bytes(b"the beginning")
    commits.inherit(commits.id_of(1, 1))
    train(successor, 1)
    assert names(tmp_path) == ["checkpoint-1-w1.hvd", "checkpoint-2-w1.hvd"]


def test_first_failure_of_a_process_that_takes_over_names_the_newest_checkpoint(tmp_path, new_job, monkeypatch):
    train(state_in(tmp_path), 2)
    new_job()
    told = []
    monkeypatch.setattr(_ffi, "note_checkpoints", lambda *words: told.append(words))
    monkeypatch.setattr(checkpoint_file, "write", full_disk)
    successor = state_in(tmp_path)
    commits.inherit(commits.id_of(1, 2))
    train(successor, 1)
    commit, _, place, failure = told[-1]
    assert (commit & 0xFF, place) == (2, str(tmp_path / "checkpoint-2-w1.hvd"))
    assert failure == f"checkpoint 3 in {tmp_path} can't be written: No space left on device"


def full_disk(*_args, **_kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_checkpoint_of_a_world_that_the_job_has_not_had_is_older_than_its_commits():
    """The job's journal was set back to an older state, e.g. by a restored backup."""
    origin = checkpoint_file.Origin(70, 9, checkpoint_folder.job(), 0)
    assert Checkpoints.id_of(origin) == 70 < commits.id_of(1, 1)
    assert Checkpoints.id_of(origin._replace(world=1)) == commits.id_of(1, 70)
    assert Checkpoints.id_of(origin._replace(before=8)) == commits.id_of(1, 70)


def test_checkpoint_keeps_its_place_while_the_process_is_between_two_worlds(monkeypatch):
    origin = checkpoint_file.Origin(70, 9, checkpoint_folder.job(), 0)
    query = _ffi.query
    for world in (9, 0):
        monkeypatch.setattr(_ffi, "query", lambda what, world=world: world if what == "epoch" else query(what))
        assert Checkpoints.id_of(origin) == commits.id_of(9, 70)
