"""The folder of checkpoints: jobs that want the same one, worlds that were given up, disks that are
full or hang. In one process, which takes the part of several."""

import contextlib
import errno
import json
import os
import resource
import shutil
import sys
import threading
import time
import types

import pytest
import torch

import horovod.torch as hvd
from checkpointed_training import as_processes, names, state_in, train
from horovod import _ffi
from horovod.common.exceptions import ABORTED, HorovodInternalError
from horovod.elastic import checkpoint_file, checkpoint_folder, checkpoints, commit_protocol, commits, folder_lock
from horovod.elastic.checkpoints import Checkpoints
from horovod.torch._loading import TREES


@pytest.fixture
def process(monkeypatch):
    """Makes what follows that of another process, of `job` and in its world number `epoch`."""
    yield from as_processes(monkeypatch)


def lines(capfd):
    return capfd.readouterr().err.splitlines()


def unfinished_in(folder):
    path = folder / ".checkpoint-9-w1.hvd.123.abc.tmp"
    path.write_bytes(b"half")
    return path


def refuse(folder, error):
    """Returns a function in place of os.listdir that fails for one folder."""
    listdir = os.listdir

    def fail(path="."):
        if os.fspath(path) == str(folder):
            raise error
        return listdir(path)

    return fail


# Two jobs.


def test_folder_that_cannot_be_used_is_named_at_once(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    missing = "can't be made: No such file or directory"
    for bad, reason in (("/proc/none/here", missing), (tmp_path / "file", "is a file: give a folder")):
        with pytest.raises(OSError, match=f"^checkpoint_dir {bad} {reason}$"):
            state_in(bad)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as root, one may write everywhere
    with pytest.raises(PermissionError, match=f"^checkpoint_dir {tmp_path} can't be written to by this user$"):
        state_in(tmp_path)
    read_only = os.statvfs_result([0] * 8 + [os.ST_RDONLY, 255, 0])
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    with pytest.raises(
        PermissionError, match=f"^checkpoint_dir {tmp_path} can't be written to on a read-only file system$"
    ):
        state_in(tmp_path)


def test_second_job_is_refused(tmp_path, process, capfd):
    first = state_in(tmp_path)
    first.sync()
    train(first, 2)
    unfinished = unfinished_in(tmp_path)
    process("b")
    second = state_in(tmp_path)
    expected = rf"^checkpoint_dir {tmp_path} is in use by another job \(process {os.getpid()} on host "
    with pytest.raises(ValueError, match=expected):
        second.sync()
    train(second, 3)  # a job that does not synchronize
    (line,) = lines(capfd)
    assert line.startswith("Horovod: checkpoint 1 in ") and "is in use by another job" in line
    assert names(tmp_path) == [unfinished.name, "checkpoint-1-w1.hvd", "checkpoint-2-w1.hvd"]
    assert json.loads((tmp_path / ".lock").read_text())["job"] == "a"


@pytest.mark.parametrize("remove", ["folder", "lock file"])
def test_lock_that_was_removed_is_taken_again(tmp_path, process, remove):
    state = state_in(tmp_path)
    train(state, 1)
    if remove == "folder":
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
    else:
        (tmp_path / ".lock").unlink()
    train(state, 1)
    with pytest.raises(folder_lock.InUse):
        _take_in_another_process(tmp_path)


def test_job_that_lost_its_lock_to_another_one_writes_no_more(tmp_path, process, capfd):
    state = state_in(tmp_path)
    train(state, 1)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    (mine,) = folder_lock._held.items()
    process("b")
    train(state_in(tmp_path), 1)
    before = names(tmp_path)
    capfd.readouterr()
    process("a")
    folder_lock._held.update([mine])
    train(state, 2)
    (line,) = lines(capfd)
    assert line.startswith("Horovod: checkpoint 2 in ") and "is in use by another job" in line
    assert names(tmp_path) == before == ["checkpoint-1-w1.hvd"]


def _take_in_another_process(folder):
    held = dict(folder_lock._held)
    folder_lock._held.clear()
    try:
        folder_lock.take(str(folder), "another job")
    finally:
        folder_lock._held.update(held)


def test_next_process_of_the_job_continues_beside_the_one_before(tmp_path, process):
    """A newer world may have another rank 0 while the one before still runs."""
    train(state_in(tmp_path), 2)
    unfinished = unfinished_in(tmp_path)
    process("a", epoch=2)
    state = state_in(tmp_path)
    state.sync()
    assert state.batch == 2 and unfinished.exists()
    commit_protocol.synchronize(state)
    train(state, 1)
    assert "checkpoint-3-w2.hvd" in names(tmp_path)


def test_next_job_has_the_folder_when_the_one_before_has_ended(tmp_path, process):
    train(state_in(tmp_path), 2)
    unfinished = unfinished_in(tmp_path)
    (lock,) = folder_lock._held.values()
    os.close(lock)  # its process ends
    process("b")
    state = state_in(tmp_path)
    state.sync()
    assert state.batch == 2 and not unfinished.exists()


def test_next_job_waits_for_the_processes_of_one_that_was_killed(tmp_path, process, monkeypatch):
    train(state_in(tmp_path), 2)
    (lock,) = folder_lock._held.values()
    process("b")
    ends = types.SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: os.close(lock))
    monkeypatch.setattr(folder_lock, "time", ends)
    monkeypatch.setattr(folder_lock, "PATIENCE_S", 100.0)
    state = state_in(tmp_path)
    state.sync()
    assert state.batch == 2
    assert json.loads((tmp_path / ".lock").read_text())["job"] == "b"


def test_folder_that_can_not_be_read_is_an_error_and_loses_nothing(tmp_path, process, monkeypatch):
    """A file server that does not answer for a moment: a job that started from the beginning would remove the checkpoints of the one before."""
    train(state_in(tmp_path), 2)
    process("a", epoch=2)
    state = state_in(tmp_path)
    with monkeypatch.context() as unreadable:
        unreadable.setattr(os, "listdir", refuse(tmp_path, OSError(errno.ESTALE, os.strerror(errno.ESTALE))))
        with pytest.raises(OSError, match=rf"^checkpoint_dir {tmp_path} can't be read: Stale file handle$"):
            state.sync()
    state.sync()
    assert state.batch == 2


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.EACCES, errno.ESTALE])
def test_checkpoint_that_can_not_be_read_now_is_an_error_and_is_kept(tmp_path, process, monkeypatch, reason):
    train(state_in(tmp_path), 2)
    process("a", epoch=2)
    state = state_in(tmp_path)
    path = tmp_path / "checkpoint-2-w1.hvd"

    def fail(name, flags):
        raise OSError(reason, os.strerror(reason))

    with monkeypatch.context() as unreadable:
        unreadable.setattr(checkpoint_file.owners, "opened", fail)
        with pytest.raises(OSError, match=rf"^checkpoint {path} can't be read: {os.strerror(reason)}$"):
            state.sync()
    state.sync()
    assert state.batch == 2 and path.exists()


def test_checkpoint_on_a_bad_part_of_the_disk_is_skipped(tmp_path, process, monkeypatch, capfd):
    train(state_in(tmp_path), 2)
    process("a", epoch=2)
    state = state_in(tmp_path)
    opened = checkpoint_file.owners.opened

    def fail(name, flags):
        if name.endswith("checkpoint-2-w1.hvd"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(name, flags)

    monkeypatch.setattr(checkpoint_file.owners, "opened", fail)
    state.sync()
    assert state.batch == 1 and "checkpoint-2-w1.hvd is skipped: Input/output error" in capfd.readouterr().err


def test_folder_that_was_removed_has_no_checkpoint(tmp_path, process, capfd):
    state = state_in(tmp_path / "new")
    (tmp_path / "new").rmdir()
    state.sync()
    assert state.batch == 0 and "can't be read" not in capfd.readouterr().err


def test_folder_without_locks_is_used_with_a_line(tmp_path, process, monkeypatch, capfd):
    def flock(descriptor, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(folder_lock.fcntl, "flock", flock)
    state = state_in(tmp_path)
    state.sync()
    train(state, 2)
    (line,) = lines(capfd)
    assert line.endswith("can't be locked (Operation not supported): see that no other job uses it")
    assert names(tmp_path) == ["checkpoint-1-w1.hvd", "checkpoint-2-w1.hvd"]


def test_lock_that_is_a_link_is_not_followed_and_told(tmp_path, process, capfd):
    (tmp_path / ".lock").symlink_to("elsewhere")
    state = state_in(tmp_path)
    state.sync()
    train(state, 2)
    (line,) = lines(capfd)
    assert line.endswith("can't be locked (.lock is a link): see that no other job uses it")
    assert not (tmp_path / "elsewhere").exists()


# Worlds.


def test_worlds_count_on_from_job_to_job(tmp_path, process):
    for job, epoch, world in (("a", 1, 1), ("a", 3, 3), ("b", 1, 4), ("b", 2, 5), ("c", 2, 7)):
        process(job, epoch)
        (tmp_path / ".lock").unlink(missing_ok=True)  # the one before has ended
        state = state_in(tmp_path)
        commit_protocol.synchronize(state)
        train(state, 1)
        newest = Checkpoints(TREES, str(tmp_path), 1)._found()[0]
        assert newest.world == world and newest.commit == state.batch


def test_name_of_a_job_that_comes_again_is_no_world_of_the_one_before(tmp_path, process):
    """Schedulers may give the same id twice; their worlds begin with 1 again."""
    process("a", epoch=7)
    train(state_in(tmp_path), 1)
    process("a", epoch=1)
    state = state_in(tmp_path)
    commit_protocol.synchronize(state)
    train(state, 1)
    assert names(tmp_path) == ["checkpoint-1-w7.hvd", "checkpoint-2-w8.hvd"]


def test_newer_world_counts_however_far_an_older_one_came(tmp_path, process, capfd):
    """The older world was paused and given up."""
    process("a", epoch=3)
    paused = state_in(tmp_path)
    train(paused, 4)
    process("a", epoch=4)
    alive = state_in(tmp_path)
    commits._newest = 3  # what its survivors had in memory
    alive.batch = 1000
    train(alive, 1)
    assert names(tmp_path)[-1] == "checkpoint-4-w4.hvd"
    process("b")
    (tmp_path / ".lock").unlink()
    next_job = state_in(tmp_path)
    commit_protocol.synchronize(next_job)
    assert next_job.batch == 1001
    assert "checkpoint-4-w4.hvd" in lines(capfd)[-1]


class Held:
    """A process that is paused at the end of a file that it writes."""

    def __init__(self, monkeypatch):
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._thread = None
        monkeypatch.setattr(_ffi, "confirm_world", self._confirm)
        self.answer = None

    def _confirm(self):
        if self._thread is None:
            self._thread = threading.current_thread()
        if self._thread is threading.current_thread():
            self.reached.set()
            assert self.go_on.wait(100)
            if self.answer is not None:
                raise self.answer


def paused_and_overtaken(tmp_path, process, monkeypatch):
    """Two worlds of a job write the same commits, the older one's last one late."""
    process("a", epoch=3)
    held = Held(monkeypatch)
    older = Checkpoints(TREES, str(tmp_path), 1)
    older.offer(5, {"from": "older"}, {})
    assert held.reached.wait(100)
    process("a", epoch=4)
    newer = Checkpoints(TREES, str(tmp_path), 1)
    for commit in (4, 5):
        newer.offer(commit, {"from": "newer"}, {})
        newer.wait()
    return held, older


def test_world_that_was_given_up_writes_nothing(tmp_path, process, monkeypatch, capfd):
    held, older = paused_and_overtaken(tmp_path, process, monkeypatch)
    held.answer = HorovodInternalError("there is world 4")
    held.go_on.set()
    older.wait()
    assert names(tmp_path) == ["checkpoint-4-w4.hvd", "checkpoint-5-w4.hvd"]
    (line,) = lines(capfd)
    assert line.endswith("the job may be in a newer world: there is world 4")


def test_file_of_an_older_world_replaces_none_of_a_newer_one(tmp_path, process, monkeypatch, capfd):
    """The process was paused after a check that was right at that time."""
    held, older = paused_and_overtaken(tmp_path, process, monkeypatch)
    held.go_on.set()
    older.wait()
    expected = ["checkpoint-4-w4.hvd", "checkpoint-5-w3.hvd", "checkpoint-5-w4.hvd"]
    assert names(tmp_path) == expected
    found = Checkpoints(TREES, str(tmp_path), 1).load_newest()
    assert found.values == {"from": "newer"} and found.origin.world == 4


def test_world_that_is_about_to_come_is_waited_for(tmp_path, process, monkeypatch):
    asked = []

    def confirm():
        asked.append(1)
        if len(asked) < 3:
            raise HorovodInternalError("no world")

    monkeypatch.setattr(_ffi, "confirm_world", confirm)
    monkeypatch.setattr(checkpoints, "_MAX_DOUBT_S", 100.0)
    monkeypatch.setattr(checkpoints, "_PAUSE_S", 0.0)
    train(state_in(tmp_path), 1)
    assert len(asked) == 3 and names(tmp_path) == ["checkpoint-1-w1.hvd"]


def test_process_that_ends_waits_for_no_other_world(tmp_path, process, monkeypatch, capfd):
    def confirm():
        raise HorovodInternalError("there is world 4", code=ABORTED)

    monkeypatch.setattr(_ffi, "confirm_world", confirm)
    monkeypatch.setattr(checkpoints, "_MAX_DOUBT_S", 100.0)
    written = Checkpoints(TREES, str(tmp_path), 1)
    written.offer(1, {}, {})
    written._finish()
    assert capfd.readouterr().err == "" and names(tmp_path) == []


# Disks.


@contextlib.contextmanager
def largest_file(size):
    """While no file may be larger, which is what a full disk comes to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_is_one_line_and_training_continues(tmp_path, process, capfd):
    model = torch.nn.Linear(1000, 500)
    state = hvd.elastic.TorchState(model, batch=0, checkpoint_dir=str(tmp_path))

    def step():
        with torch.no_grad():
            model.weight.add_(1)
        state.batch += 1
        state.commit()
        state._checkpoints.wait()

    step()
    whole = (tmp_path / "checkpoint-1-w1.hvd").read_bytes()
    with largest_file(1 << 20):
        step()
        step()
        assert (state.batch, commits.newest()) == (3, 3)
        assert names(tmp_path) == ["checkpoint-1-w1.hvd"]
        assert (tmp_path / "checkpoint-1-w1.hvd").read_bytes() == whole
    (line,) = lines(capfd)
    assert line == f"Horovod: checkpoint 2 in {tmp_path} can't be written: File too large"
    step()
    assert names(tmp_path) == ["checkpoint-1-w1.hvd", "checkpoint-4-w1.hvd"]
    found = Checkpoints(TREES, str(tmp_path), 1).load_newest()
    assert found.values["batch"] == 4
    assert torch.equal(found.trees["model"]["weight"], model.weight)


def test_full_disk_is_said_again_at_the_end(tmp_path, process, capfd):
    """Otherwise a drain, for example, would seem to have written the last commit."""
    model = torch.nn.Linear(1000, 500)
    state = hvd.elastic.TorchState(model, checkpoint_dir=str(tmp_path))
    with largest_file(1 << 20):
        for _ in range(3):
            state.commit()
            state._checkpoints.wait()
        state._checkpoints._finish()
    first, last = lines(capfd)
    assert first == f"Horovod: checkpoint 1 in {tmp_path} can't be written: File too large"
    assert last == f"Horovod: the last commit that was due, 3, is in no checkpoint in {tmp_path}: File too large"


def test_hung_disk_is_one_line_and_training_continues(tmp_path, process, monkeypatch, capfd):
    hangs, ends = threading.Event(), threading.Event()
    real = os.fsync

    def fsync(descriptor):
        hangs.set()
        assert ends.wait(100)
        real(descriptor)

    monkeypatch.setattr(checkpoint_folder.os, "fsync", fsync)
    state = state_in(tmp_path)
    state.batch = 1
    state.commit()
    assert hangs.wait(100)
    monkeypatch.setattr(checkpoints, "_LONG_S", 0.0)
    for state.batch in range(2, 6):
        state.commit()  # none of them waits
    assert commits.newest() == 5
    (line,) = lines(capfd)
    assert f"checkpoint 1 in {tmp_path} has been under way for 0 s" in line
    assert line.endswith("training continues")
    monkeypatch.setattr(checkpoints, "_MAX_WAIT_S", 0.0)
    state._checkpoints.wait()  # at the end of the process
    (line,) = lines(capfd)
    assert line.endswith("is given up: it was not written within 0 s")
    monkeypatch.setattr(checkpoints, "_MAX_WAIT_S", 100.0)
    ends.set()
    state._checkpoints.wait()
    assert names(tmp_path) == ["checkpoint-1-w1.hvd"]
    assert Checkpoints(TREES, str(tmp_path), 1).load_newest().values["batch"] == 1


# Several runs in one script.


def test_next_run_overwrites_nothing_that_the_last_one_still_writes(tmp_path, process, monkeypatch, capfd):
    events, may_read = [], threading.Event()
    write, end_read = checkpoints.checkpoint_file.write, Checkpoints.end_read

    def write_late(*args, **kwargs):
        may_read.wait()
        write(*args, **kwargs)
        events.append("read")

    def end_read_now(self):
        may_read.set()
        end_read(self)

    monkeypatch.setattr(checkpoints.checkpoint_file, "write", write_late)
    monkeypatch.setattr(Checkpoints, "end_read", end_read_now)

    @hvd.elastic.run
    def run(state, name):
        events.append(name)
        may_read.clear() if name == "first" else may_read.set()
        for _ in range(2):  # the second file waits for the first one
            state.batch += 1
            state.commit()

    first, second = state_in(tmp_path), state_in(tmp_path)
    run(first, "first")
    run(second, "second")
    assert events[:3] == ["first", "read", "second"]
    assert first._checkpoints._postponed is None
    second._checkpoints.wait()
    assert "can't be written" not in capfd.readouterr().err


def test_read_that_takes_too_long_is_given_up_when_the_next_run_begins(tmp_path, process, monkeypatch, capfd):
    may_read, write = threading.Event(), checkpoints.checkpoint_file.write

    def write_late(*args, **kwargs):
        may_read.wait()
        write(*args, **kwargs)

    monkeypatch.setattr(checkpoints.checkpoint_file, "write", write_late)
    state = state_in(tmp_path)
    state.commit()
    with monkeypatch.context() as hurry:
        hurry.setattr(checkpoints, "_MAX_WAIT_S", 0.0)
        checkpoints.end_reads()
    may_read.set()
    state._checkpoints.wait()
    assert names(tmp_path) == []
    assert "the next run of the script has begun" in capfd.readouterr().err


def test_file_that_this_process_writes_is_not_unfinished(tmp_path, process, monkeypatch):
    state = state_in(tmp_path)
    monkeypatch.setattr(_ffi, "confirm_world", lambda: state._checkpoints._folder.remove_unfinished())
    state.commit()
    state._checkpoints.wait()
    assert names(tmp_path) == ["checkpoint-1-w1.hvd"]


def test_checkpoint_of_another_script_is_used_with_a_line(tmp_path, process, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["/home/me/first.py"])
    train(state_in(tmp_path), 1)
    checkpoint = tmp_path / "checkpoint-1-w1.hvd"
    for script, said in (("/other/first.py", []), ("-c", []), ("second.py", ["first.py, not second.py"])):
        process("b")
        monkeypatch.setattr(sys, "argv", [script])
        capfd.readouterr()
        assert Checkpoints(TREES, str(tmp_path), 1).load_newest(alone=False).commit == 1
        told = [f"Horovod: checkpoint {checkpoint} was written by another script: {names}" for names in said]
        assert lines(capfd) == [f"Horovod: going on from commit 1, checkpoint {checkpoint}", *told]
