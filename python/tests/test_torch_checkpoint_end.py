"""The last file of a process that ends, on a disk or in a store that fails for a while. In one process."""

import errno
import os
import types

import pytest

from checkpointed_training import as_processes, names, state_in, train
from horovod.elastic import checkpoint_file, checkpoints
from horovod.elastic.checkpoint_url import CheckpointUrl, Unreachable


@pytest.fixture
def process(monkeypatch):
    yield from as_processes(monkeypatch)


class Disk:
    """Fails `fails` times; a second passes with each write."""

    def __init__(self, monkeypatch):
        self.error, self.fails, self.writes, self.now = OSError(), 0, 0, 1000.0
        self._write = checkpoint_file.write
        clock = types.SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)
        monkeypatch.setattr(checkpoint_file, "write", self.write)
        monkeypatch.setattr(checkpoints, "time", clock)

    def write(self, *args, **kwargs):
        self.writes += 1
        self.now += 1
        if self.writes <= self.fails:
            raise self.error
        self._write(*args, **kwargs)

    def _sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


def os_error(number):
    return OSError(number, os.strerror(number))


def drained(folder, monkeypatch):
    """The state of a process that the job has released, whose last commit is in no file yet."""
    monkeypatch.setattr(checkpoints.process, "released", True)
    state = state_in(folder, every=100)
    train(state, 3)
    return state


PASSING = ["ENOSPC", "EDQUOT", "EIO", "ESTALE", "ETIMEDOUT", "EAGAIN"]


@pytest.mark.parametrize("name", PASSING)
def test_last_file_is_tried_again_after_an_error_that_passes(tmp_path, process, disk, monkeypatch, capfd, name):
    state = drained(tmp_path, monkeypatch)
    disk.error, disk.fails = os_error(getattr(errno, name)), 3
    state._checkpoints._finish()
    assert names(tmp_path) == ["checkpoint-3-w1.hvd"] and disk.writes == 4
    assert capfd.readouterr().err == ""


def test_error_that_stays_is_told_after_some_seconds(tmp_path, process, disk, monkeypatch, capfd):
    state = drained(tmp_path, monkeypatch)
    disk.error, disk.fails = os_error(errno.ENOSPC), 1000
    began = disk.now
    state._checkpoints._finish()
    assert names(tmp_path) == [] and 3 < disk.now - began < 7
    (line,) = capfd.readouterr().err.splitlines()
    assert line == (
        f"Horovod: the last commit that was due, 3, is in no checkpoint in {tmp_path}: No space left on device"
    )


@pytest.mark.parametrize("error", [os_error(errno.EFBIG), os_error(errno.EACCES), ValueError("no such value")])
def test_other_errors_are_not_tried_again(tmp_path, process, disk, monkeypatch, error):
    state = drained(tmp_path, monkeypatch)
    disk.error, disk.fails = error, 1000
    state._checkpoints._finish()
    assert names(tmp_path) == [] and disk.writes == 1


def test_write_that_has_failed_when_the_process_ends_is_tried_again(tmp_path, process, disk):
    """As that of the commit at which a job is drained, if each commit is written."""
    disk.error, disk.fails = os_error(errno.EIO), 3
    state = state_in(tmp_path)
    train(state, 2)
    assert names(tmp_path) == [] and disk.writes == 2  # training does not wait
    state._checkpoints._finish()
    assert names(tmp_path) == ["checkpoint-2-w1.hvd"] and disk.writes == 4


def test_contents_that_are_gone_are_not_written_at_the_end(tmp_path, process, disk):
    disk.error, disk.fails = os_error(errno.EIO), 1
    state = state_in(tmp_path)
    train(state, 1)
    state.save()
    state._checkpoints._finish()
    assert names(tmp_path) == [] and disk.writes == 1


def test_store_that_does_not_answer_is_asked_again():
    place = CheckpointUrl("memory://here", "memory")
    assert place.may_pass(Unreachable()) and place.may_pass(ConnectionResetError()) and place.may_pass(TimeoutError())
    assert place.may_pass(os_error(errno.EIO))
    assert not place.may_pass(PermissionError("Access Denied")) and not place.may_pass(ValueError())
