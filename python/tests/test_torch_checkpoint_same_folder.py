"""Whether the ranks of an elastic job have one folder for checkpoints. In one process, which takes the part of several."""

import os

import pytest

from checkpointed_training import as_processes, state_in
from horovod.elastic import folder_lock, same_folder
from horovod.elastic.same_folder import compare, locked_place


@pytest.fixture
def process(monkeypatch):
    for become in as_processes(monkeypatch):
        monkeypatch.setattr(same_folder, "is_elastic", lambda: True)
        monkeypatch.setattr(same_folder, "_told", False)
        monkeypatch.setattr(same_folder, "_compared", set())
        monkeypatch.setenv("HOROVOD_HOSTNAME", "node7")
        yield become


def place_in(folder):
    return state_in(folder)._checkpoints.place


def rank_0_in(folder):
    """What rank 0 tells the others when it has looked for checkpoints."""
    state = state_in(folder)
    state.sync()
    return locked_place(state._checkpoints.place)


def told(capfd):
    return [line for line in capfd.readouterr().err.splitlines() if "rank 0" in line]


def test_same_folder_is_not_told(tmp_path, process, capfd):
    (tmp_path / "other path").symlink_to(tmp_path)
    where = rank_0_in(tmp_path)
    process()
    compare(place_in(tmp_path), where)
    compare(place_in(tmp_path / "other path"), where)
    assert where == f"{tmp_path} on host node7" and told(capfd) == []


@pytest.mark.parametrize("there", ["nothing", "lock of another job"])
def test_another_folder_is_told_once(tmp_path, process, capfd, there):
    other = tmp_path / "other"
    if there != "nothing":
        process("b")
        rank_0_in(other)
    process()
    where = rank_0_in(tmp_path / "a")
    process()
    for folder in (other, other, tmp_path / "third"):
        compare(place_in(folder), where)
    (line,) = told(capfd)
    assert line == (
        f"Horovod: checkpoint_dir {other} of rank 0 on host node7 is not rank 0's: rank 0 writes checkpoints to "
        f"{tmp_path / 'a'} on host node7. If this process became rank 0, it would not find them, and a restart could begin at an "
        "old commit. Give all ranks the same folder of a shared file system, or a URL"
    )


def test_folder_that_is_gone_is_told(tmp_path, process, capfd):
    where = rank_0_in(tmp_path / "a")
    place = place_in(tmp_path / "other")
    os.rmdir(tmp_path / "other")
    compare(place, where)
    assert len(told(capfd)) == 1


def test_rank_without_a_folder_is_told(tmp_path, process, capfd):
    """As one of a script that makes only rank 0 write."""
    compare(None, rank_0_in(tmp_path))
    (line,) = told(capfd)
    assert line.startswith("Horovod: rank 0 on host node7 has no checkpoint_dir: rank 0 writes checkpoints to ")


def test_folder_that_rank_0_could_not_lock_is_not_compared(tmp_path, process, monkeypatch, capfd):
    def no_locks(*_):
        raise OSError("not supported")

    monkeypatch.setattr("fcntl.flock", no_locks)
    where = rank_0_in(tmp_path / "a")
    compare(place_in(tmp_path / "other"), where)
    assert where == "" and told(capfd) == []


def test_lock_that_could_not_be_signed_is_not_compared(tmp_path, process, monkeypatch):
    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr("os.pwrite", full)
    assert rank_0_in(tmp_path) == ""


def test_other_rank_0s_are_not_compared(tmp_path, process, monkeypatch):
    rank_0_in(tmp_path)
    process()
    assert locked_place(place_in(tmp_path)) == ""  # the rank 0 before this one still has the lock
    assert locked_place(None) == ""
    monkeypatch.setattr(same_folder, "is_elastic", lambda: False)
    assert rank_0_in(tmp_path / "static") == ""


@pytest.mark.parametrize("lock", ["unreadable", "empty"])
def test_what_can_not_be_known_is_not_told(tmp_path, process, capfd, lock):
    where = rank_0_in(tmp_path / "a")
    place = place_in(tmp_path / "other")
    path = tmp_path / "other" / ".lock"
    if lock == "empty":
        path.touch()
    else:
        path.symlink_to("nowhere")
    compare(place, where)
    assert folder_lock.shows(str(path.parent), "a") is None and told(capfd) == []
