"""Checkpoints below a URL: what a folder promises, without its renames and locks. In one process, which takes the part of several, with fsspec's
memory://; tests/engines/checkpoint_url_test.py has S3's."""

import json
import sys
import threading
import uuid

import pytest
import torch

import horovod.torch as hvd
from checkpointed_training import state_in, train
from elastic_training import assert_equal, snapshot
from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError
from horovod.elastic import (
    checkpoint_file,
    checkpoint_folder,
    checkpoint_url,
    checkpoints,
    commit_protocol,
    commits,
    url_claim,
)
from horovod.elastic.checkpoint_folder import CheckpointFolder
from horovod.elastic.checkpoint_url import Unreachable, place_of
from horovod.elastic.checkpoints import Checkpoints
from horovod.torch._loading import TREES


@pytest.fixture
def store():
    """fsspec's store in memory, and a URL in it."""
    fsspec = pytest.importorskip("fsspec")
    url = f"memory://{uuid.uuid4().hex}/job"
    memory = fsspec.filesystem("memory")
    memory.url = url
    yield memory
    for key in [key for key in memory.store if key.startswith(url.partition("/")[2][:33])]:
        del memory.store[key]


@pytest.fixture
def names(store):
    return lambda: sorted(place._names() if (place := opened(store.url)) else [])


def opened(url):
    place = place_of(url)
    place.make()
    return place


@pytest.fixture
def process(monkeypatch):
    """Simulates another process, of `job` and in its world number `epoch`; claims send a heartbeat only on request."""

    def become(job="a", epoch=1):
        monkeypatch.setattr(commits, "_newest", 0)
        monkeypatch.setattr(checkpoint_folder, "_LONE_JOB", job)
        monkeypatch.setattr(checkpoints, "_newest_worlds", {})
        query = _ffi.query
        monkeypatch.setattr(_ffi, "query", lambda what: epoch if what == "epoch" else query(what))

    monkeypatch.setattr(_ffi, "confirm_world", lambda: None)
    monkeypatch.setattr(checkpoints, "_MAX_DOUBT_S", 0.0)
    monkeypatch.setattr(url_claim, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(url_claim, "_BEAT_S", 1000.0)
    become()
    return become


def lines(capfd):
    return capfd.readouterr().err.splitlines()


# What a URL is.


def test_url_of_files_is_a_folder(tmp_path):
    for url in (f"file://{tmp_path}/a", f"file://localhost{tmp_path}/a", f"local://{tmp_path}/a", tmp_path / "a"):
        place = place_of(url)
        assert isinstance(place, CheckpointFolder) and place.path == str(tmp_path / "a")


@pytest.mark.parametrize(
    "url, problem", [("file://data/job", "names the host data"), ("file://localhost", "names no path")]
)
def test_url_of_files_elsewhere_is_refused(url, problem):
    """It would mean a folder in the directory where the script runs."""
    with pytest.raises(ValueError, match=rf"^checkpoint_dir {url} {problem}: give file:///PATH[^\n]*$"):
        place_of(url)


@pytest.mark.parametrize("text", ["s3:/bucket/job", "gs:/bucket"])
def test_path_that_was_a_url_is_refused(text):
    with pytest.raises(ValueError, match=r"one slash is missing: give (s3|gs)://bucket(/job)? as text"):
        Checkpoints(TREES, text, 1)


def test_without_fsspec_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"^checkpoint_dir s3://bucket/job needs fsspec: pip install 'fsspec\[s3\]'$"):
        Checkpoints(TREES, "s3://bucket/job", 1)


def test_what_fsspec_does_not_know_is_one_line(store):
    with pytest.raises(ValueError, match=r"^checkpoint_dir nothing://a/b: Protocol not known: nothing"):
        Checkpoints(TREES, "nothing://a/b", 1)


def test_password_in_a_url_is_not_shown():
    assert place_of("ftp://me:secret@host/a@b/").path == "ftp://host/a@b"
    assert place_of("ftp://me:sec@ret@host/a").path == "ftp://host/a"


@pytest.mark.parametrize(
    "text", ["simplecache::s3://bucket/job", "simplecache::s3:/bucket/job", "a::b::ftp://me:s@host/job"]
)
def test_chain_of_file_systems_is_refused(text):
    """It is not a URL, and would mean the path of a folder on this machine."""
    with pytest.raises(ValueError, match=r"is a chain of file systems: give the URL of the store alone") as raised:
        place_of(text)
    assert "me:s" not in str(raised.value)


def test_folder_with_colons_is_a_folder(tmp_path):
    assert place_of(tmp_path / "run::1").path == str(tmp_path / "run::1")
    assert isinstance(place_of("run::1"), CheckpointFolder)


# As in a folder.


def test_job_starts_again_from_the_newest_two_are_kept(store, names, process, capfd):
    state = state_in(store.url)
    commit_protocol.synchronize(state)
    train(state, 4)
    committed = snapshot(state.model, state.optimizer)
    assert names() == [".claim", "checkpoint-3-w1.hvd", "checkpoint-4-w1.hvd"]
    state._checkpoints._finish()
    assert names() == ["checkpoint-3-w1.hvd", "checkpoint-4-w1.hvd"]
    process("b")
    again = state_in(store.url)
    commit_protocol.synchronize(again)
    assert (again.batch, again.sampler.processed_num) == (4, 4)
    assert_equal(snapshot(again.model, again.optimizer), committed)
    assert lines(capfd) == [f"Horovod: going on from commit 4, checkpoint {store.url}/checkpoint-4-w1.hvd"]
    train(again, 1)
    assert "checkpoint-5-w2.hvd" in names()


def test_large_tensors_go_in_pieces(store, process, monkeypatch):
    monkeypatch.setattr(checkpoint_url, "_PIECE", 1000)
    written = Checkpoints(TREES, store.url, 1)
    weights = torch.arange(100_000, dtype=torch.float32)
    written.offer(1, {"numbers": list(range(5000))}, {"model": {"weights": weights}})
    written.wait()
    found = Checkpoints(TREES, store.url, 1).load_newest()
    assert torch.equal(found.trees["model"]["weights"], weights) and found.values == {"numbers": list(range(5000))}


def test_best_one_is_kept_and_read(store, names, process):
    state = hvd.elastic.TorchState(loss=0, checkpoint_dir=store.url, checkpoint_best="min loss", checkpoint_keep=1)
    for state.loss in (3, 1, 2):
        state.commit()
        state._checkpoints.wait()
    assert hvd.elastic.load_checkpoint(f"{store.url}/best.hvd")["loss"] == 1
    assert hvd.elastic.load_checkpoint(store.url)["loss"] == 2
    assert [name for name in names() if name.endswith(".hvd")] == ["best.hvd", "checkpoint-3-w1.hvd"]


def test_damaged_one_is_skipped_with_a_line(store, names, process, capfd):
    train(state_in(store.url), 3)
    key = store.url.partition("://")[2] + "/checkpoint-3-w1.hvd"
    store.pipe_file(key, store.cat_file(key)[:-5])
    process("b")
    state = state_in(store.url)
    commit_protocol.synchronize(state)
    skipped, taken = lines(capfd)
    assert skipped.startswith(f"Horovod: checkpoint {store.url}/checkpoint-3-w1.hvd is skipped: ")
    assert skipped.endswith("bytes are there") and "from commit 2" in taken and state.batch == 2


def test_world_that_was_given_up_writes_nothing(store, names, process, monkeypatch, capfd):
    def confirm():
        raise HorovodInternalError("there is world 4")

    monkeypatch.setattr(_ffi, "confirm_world", confirm)
    train(state_in(store.url), 1)
    assert names() == [".claim"]
    (line,) = lines(capfd)
    assert line.endswith("the job may be in a newer world: there is world 4")


def test_nothing_there_is_no_checkpoint(store, process, capfd):
    assert Checkpoints(TREES, store.url, 1).load_newest() is None and lines(capfd) == []


# A store that does not answer.


def test_store_that_can_not_be_asked_ends_a_job_at_its_start(store, process, monkeypatch):
    """Otherwise it would start from the beginning, and its checkpoints would count as newer."""
    train(state_in(store.url), 2)

    def fail(*args, **kwargs):
        raise RuntimeError("no credentials\nand much more")

    process("b")
    state = state_in(store.url)
    for name in ("cat_file", "ls", "open"):
        with monkeypatch.context() as patch:
            patch.setattr(type(store), name, fail)
            with pytest.raises(Unreachable, match=f"^checkpoint_dir {store.url} can't be reached: no credentials$"):
                state.sync()


def test_store_that_takes_nothing_is_one_line_and_training_continues(store, names, process, monkeypatch, capfd):
    state = state_in(store.url)
    train(state, 1)

    def refuse(*args, **kwargs):
        raise PermissionError("Access Denied")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_file, "write", refuse)
        train(state, 2)
    (line,) = lines(capfd)
    assert line == f"Horovod: checkpoint 2 in {store.url} can't be written: Access Denied"
    assert names() == [".claim", "checkpoint-1-w1.hvd"] and commits.newest() == 3
    train(state, 1)
    assert names() == [".claim", "checkpoint-1-w1.hvd", "checkpoint-4-w1.hvd"]


def test_store_that_fails_a_process_which_takes_over_is_one_line(store, process, monkeypatch, capfd):
    """It has not looked for a checkpoint yet, and can't now."""
    successor = state_in(store.url)

    def refuse(*args, **kwargs):
        raise ValueError("no credentials")

    told = []
    commits.inherit(commits.id_of(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(_ffi, "note_checkpoints", lambda *words: told.append(words))
        for name in ("ls", "open"):
            patch.setattr(type(store), name, refuse)
        train(successor, 1)
    problem = (
        f"checkpoint 3 in {store.url} can't be written: checkpoint_dir {store.url} can't be reached: no credentials"
    )
    assert lines(capfd) == [f"Horovod: {problem}"]
    assert told[-1][3] == problem


# Two jobs.


class Rival:
    """Another job's process, whose claim beats whenever the one that waits for it sleeps."""

    def __init__(self, url, monkeypatch, beats=1):
        place = place_of(url)
        place.make()
        self.claim, self._left = place._claim, beats
        self.claim.take("rival")
        monkeypatch.setattr(url_claim, "_PATIENCE_S", 0.2)
        monkeypatch.setattr(url_claim.time, "sleep", self._sleep)

    def _sleep(self, seconds):
        if self._left > 0:
            self._left -= 1
            self.claim._write()
        else:
            threading.Event().wait(0.05)


def test_second_job_is_refused(store, names, process, monkeypatch, capfd):
    rival = Rival(store.url, monkeypatch)
    state = state_in(store.url)
    with pytest.raises(
        ValueError, match=rf"^checkpoint_dir {store.url} is in use by another job \(process \d+ on host "
    ):
        state.sync()
    train(state, 1)  # a job that does not synchronize: no process sends a heartbeat any more
    assert names() == [".claim", "checkpoint-1-w1.hvd"]
    with pytest.raises(checkpoint_url.InUse):
        rival.claim.confirm()


def test_claim_of_a_job_that_was_killed_is_taken_over(store, names, process, monkeypatch, capfd):
    Rival(store.url, monkeypatch, beats=0)
    state = state_in(store.url)
    state.sync()
    claim = json.loads(store.cat_file(store.url.partition("://")[2] + "/.claim"))
    assert claim["job"] == "a"
    (line,) = lines(capfd)
    assert (
        line.startswith(f"Horovod: {store.url} is claimed by process ") and "it is taken over if that is gone" in line
    )


def test_job_that_lost_its_url_while_it_was_paused_writes_nothing_more(store, names, process, monkeypatch, capfd):
    state = state_in(store.url)
    commit_protocol.synchronize(state)
    train(state, 1)
    process("b")
    other = state_in(store.url)
    commit_protocol.synchronize(other)
    process("a")
    train(state, 2)
    (line,) = [line for line in lines(capfd) if "can't be written" in line]
    assert line.startswith(
        f"Horovod: checkpoint 2 in {store.url} can't be written: {store.url} is in use by another job "
    )
    assert names() == [".claim", "checkpoint-1-w1.hvd"]
    other._checkpoints._finish()
    train(state, 1)
    assert names() == ["checkpoint-1-w1.hvd"], "nor when the other one has ended: its worlds are newer"


def test_checkpoint_of_the_job_that_took_the_url_stays(store, names, process, monkeypatch):
    """It may have the same name."""
    place, other = opened(store.url), opened(store.url)
    place.take("a")
    other.take("b")
    removed = []
    monkeypatch.setattr(place, "_remove", removed.append)
    with pytest.raises(checkpoint_url.InUse):
        place._put("checkpoint-1-w1.hvd", lambda file: None, lambda: None)
    assert removed == []


def test_url_that_is_taken_during_an_upload_gets_no_object(store, names, process, monkeypatch, capfd):
    state = state_in(store.url)
    commit_protocol.synchronize(state)
    place = place_of(store.url)
    place.make()
    monkeypatch.setattr(_ffi, "confirm_world", lambda: place._claim.take("b"))
    train(state, 1)
    assert "is in use by another job" in lines(capfd)[-1]


def test_next_process_of_the_job_continues_beside_the_one_before(store, names, process):
    train(state_in(store.url), 2)
    process("a", epoch=2)
    state = state_in(store.url)
    commit_protocol.synchronize(state)
    train(state, 1)
    assert "checkpoint-3-w2.hvd" in names()
