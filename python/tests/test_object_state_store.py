"""Commits of an ObjectState, and of states of other kinds, that outlive their process. In one process."""

import pytest
import torch

import horovod.torch as hvd
from agents_store import enter, new_process
from horovod.common.exceptions import HorovodInternalError
from horovod.elastic import commit_protocol, commit_store, commits
from horovod.elastic.loop import run_fn


class Mine(hvd.elastic.ObjectState):
    """A user's own, which says when it restores."""

    def restore(self):
        self.restored = True
        super().restore()


@pytest.mark.parametrize("kind", [hvd.elastic.ObjectState, Mine])
def test_object_state_outlives_its_process(store, monkeypatch, capsys, kind):
    state = kind(step=0, history=[])
    for _ in range(3):
        state.step += 1
        state.history.append(object)
        state.commit()
    assert store.newest[0] == commits.newest() == store.told == 3
    state.step = 100
    new_process(monkeypatch)
    fresh = kind(step=0, history=[])
    enter(fresh)
    assert (fresh.step, fresh.history) == (3, [object] * 3)
    assert commits.newest() == 3 == store.told
    assert capsys.readouterr().err == "Horovod: going on from commit 3, kept in memory\n"
    fresh.step = 9
    fresh.history.append(1)
    fresh.restore()
    assert (fresh.step, fresh.history) == (3, [object] * 3)
    fresh.commit()
    assert store.newest[0] == 4


def moved_away(store, monkeypatch):
    """What was committed lies on another host, whose copy the agent here keeps."""
    number, slot = store.newest
    store.kept, store.newest = (number, bytearray(slot)), None
    new_process(monkeypatch)


def test_process_begins_with_the_copy_of_another_hosts_commit(store, monkeypatch):
    hvd.elastic.ObjectState(step=7).commit()
    moved_away(store, monkeypatch)
    fresh = hvd.elastic.ObjectState(step=0)
    enter(fresh)
    assert fresh.step == 7 and commits.newest() == 1 == store.told


def test_rank_0_of_the_next_world_begins_with_a_newer_copy(store, monkeypatch):
    """The copy arrived after rank 0 had asked for the one before."""
    other = hvd.elastic.ObjectState(step=0)
    for other.step in (1, 2, 3):
        other.commit()
    moved_away(store, monkeypatch)
    copy, store.kept = store.kept, None
    seen = []

    def train(state):
        seen.append((state.step, commits.newest()))
        if len(seen) == 1:
            state.step = 10
            state.commit()
            raise HorovodInternalError("the others are gone")

    run_fn(train, lambda: setattr(store, "kept", copy))(hvd.elastic.ObjectState(step=0))
    assert seen == [(0, 0), (3, 3)]


def training_state():
    return hvd.elastic.TorchState(torch.nn.Linear(3, 2), batch=0)


def test_process_whose_state_does_not_fit_the_commit_ends(store, monkeypatch):
    """It must not start from the beginning: it could lead a world without the commit."""
    hvd.elastic.ObjectState(step=7).commit()
    for other in (lambda: hvd.elastic.ObjectState(epoch=0), training_state):
        new_process(monkeypatch)
        with pytest.raises(
            ValueError, match=r"^commit 1 of this job does not fit the state that a new process builds: only one"
        ):
            enter(other())
        assert store.newest[0] == 1 == store.told
    training_state().commit()
    new_process(monkeypatch)
    with pytest.raises(ValueError, match=r"does not fit the state .*: it has tensors"):
        enter(hvd.elastic.ObjectState(batch=3, optimizer=None))


def test_object_state_that_was_given_a_commit_keeps_it(store):
    """A newcomer's store gets what rank 0 has committed, in the sync."""
    state = hvd.elastic.ObjectState(step=0)
    state._bcast_object = lambda mine: ({"step": 5}, 3)
    commits._newest = 3  # as the ranks agree
    commit_protocol.synchronize(state)
    assert store.newest[0] == 3 and commit_store.inherited().values() == {"step": 5}
    before = store.newest
    state.sync()  # outside of the loop the number of the commit is unknown
    assert store.newest == before and store.told == 0


def test_state_of_a_kind_of_its_own_says_that_commits_end_with_the_process(store, capsys):
    class Own(hvd.elastic.State):
        def save(self):
            pass

    state = Own()
    state.commit()
    state.commit()
    line = "Horovod: commits will not outlive this process: Own is not derived from hvd.elastic.ObjectState\n"
    assert capsys.readouterr().err == line and store.newest is None
