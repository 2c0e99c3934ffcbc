"""What other users may put beside checkpoints, in folders that all users may write to. In one process, which takes the part of
several."""

import fcntl
import json
import os

import pytest

import horovod.torch as hvd
from checkpointed_training import as_processes, names, state_in, train
from horovod.elastic import checkpoint_folder, folder_lock, messages
from horovod.elastic.checkpoints import Checkpoints
from horovod.torch._loading import TREES

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def process(monkeypatch):
    """Makes what follows that of another process, of `job` and in its world number `epoch`."""
    yield from as_processes(monkeypatch)


def lines(capfd):
    return capfd.readouterr().err.splitlines()


@only_root
def test_checkpoint_of_another_user_in_a_shared_folder_is_skipped(tmp_path, process, capfd):
    tmp_path.chmod(0o1777)
    train(state_in(tmp_path), 2)
    os.chown(tmp_path / "checkpoint-2-w1.hvd", 12345, 12345)
    process("b")
    found = Checkpoints(TREES, str(tmp_path), 1).load_newest(alone=False)
    assert found.commit == 1
    assert lines(capfd)[0].endswith(
        "checkpoint-2-w1.hvd is skipped: it belongs to user 12345, in a folder that all users may write to"
    )
    os.chown(tmp_path, 12345, 12345)  # who owns the folder could do anything anyway
    assert Checkpoints(TREES, str(tmp_path), 1).load_newest(alone=False).commit == 2


@only_root
@pytest.mark.parametrize("ours", [True, False])
def test_link_to_a_checkpoint_in_a_shared_folder_is_followed_only_if_it_is_ones_own(tmp_path, process, capfd, ours):
    """A link of another user could name a checkpoint of another job."""
    shared, other = tmp_path / "shared", tmp_path / "other"
    train(state_in(other), 2)
    process("b")
    train(state_in(shared), 1)
    shared.chmod(0o1777)
    link = shared / "checkpoint-2-w9.hvd"
    link.symlink_to(os.path.join(os.pardir, "other", "checkpoint-2-w1.hvd"))
    if not ours:
        os.chown(link, 12345, 12345, follow_symlinks=False)
    process("c")
    capfd.readouterr()
    assert Checkpoints(TREES, str(shared), 1).load_newest(alone=False).commit == (2 if ours else 1)
    told = lines(capfd)
    if not ours:
        assert told[0].endswith(
            f"{link} is skipped: it is a link; it belongs to user 12345, in a folder that all users may write to"
        )
        with pytest.raises(ValueError, match="it is a link; it belongs to user 12345"):
            hvd.elastic.load_checkpoint(link)
    link.unlink()
    link.symlink_to(link.name)
    assert Checkpoints(TREES, str(shared), 1).load_newest(alone=False).commit == 1
    assert "Too many levels of symbolic links" in capfd.readouterr().err


@only_root
def test_lock_of_another_user_in_a_shared_folder_stops_no_job(tmp_path, process, capfd):
    tmp_path.chmod(0o777)
    lock = tmp_path / ".lock"
    lock.touch()
    lock.chmod(0o666)
    os.chown(lock, 12345, 12345)
    with open(lock) as strangers:
        fcntl.flock(strangers, fcntl.LOCK_EX)
        train(state_in(tmp_path), 1)
    assert names(tmp_path) == ["checkpoint-1-w1.hvd"] and lock.read_text() == ""
    (line,) = lines(capfd)
    assert line == (
        f"Horovod: {tmp_path} can't be locked (.lock: it belongs to user 12345, in a folder that all users may write to): "
        "see that no other job uses it"
    )


@pytest.mark.parametrize(
    "what", [{"pid": "\x1b[2J", "host": "a\n\x1b]0;title\x07" * 100}, {"pid": [1], "host": None}, {}]
)
def test_what_a_lock_says_cannot_act_on_the_terminal(tmp_path, process, what):
    lock = tmp_path / ".lock"
    lock.write_text(json.dumps(what))
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(folder_lock.InUse) as caught:
            folder_lock.take(str(tmp_path), "b")
    assert str(caught.value).isprintable() and "(process ? on host " in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_messages_have_no_control_characters(capfd):
    messages.say("written by \x1b[2J\ntwo \x9b1m \u202e lines, \u00fc")
    assert capfd.readouterr().err == "Horovod: written by \\x1b[2J\\ntwo \\x9b1m \\u202e lines, \u00fc\n"


@only_root
def test_nothing_is_loaded_from_another_users_folder_in_a_shared_one(tmp_path, process):
    tmp_path.chmod(0o1777)
    train(state_in(tmp_path / "job"), 1)
    os.chown(tmp_path / "job", 12345, 12345)
    for path in (tmp_path / "job", tmp_path / "job" / "checkpoint-1-w1.hvd"):
        with pytest.raises(PermissionError, match="job can't be used: it belongs to user 12345"):
            hvd.elastic.load_checkpoint(path)


@only_root
def test_copy_of_the_best_checkpoint_is_not_of_a_strangers_link(tmp_path, monkeypatch):
    """On a file system without hard links, in a folder where others can replace files."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "job"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "a.hvd").symlink_to(secret)
    os.chown(folder / "a.hvd", 12345, 12345, follow_symlinks=False)

    def no_links(*_):
        raise OSError

    monkeypatch.setattr(os, "link", no_links)
    place = checkpoint_folder.CheckpointFolder(folder)
    with pytest.raises(PermissionError):
        place.keep_as("a.hvd", "best.hvd")
    assert names(folder) == ["a.hvd"]
    (folder / "a.hvd").unlink()
    (folder / "a.hvd").write_text("mine")
    place.keep_as("a.hvd", "best.hvd")
    assert (folder / "best.hvd").read_text() == "mine"
    assert (folder / "best.hvd").stat().st_mode & 0o777 == 0o600


@only_root
def test_folder_of_another_user_in_a_shared_one_is_refused(tmp_path, process):
    tmp_path.chmod(0o1777)
    folder = tmp_path / "job"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(PermissionError, match="job can't be used: it belongs to user 12345"):
        state_in(folder)
    tmp_path.chmod(0o755)
    state_in(folder)
