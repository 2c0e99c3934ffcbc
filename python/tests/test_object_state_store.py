"""Commits of an ObjectState, and of states of other kinds, that outlive their process. In one process."""

import pytest
import torch

import horovod.torch as hvd
from agents_store import enter, new_process
from horovod.elastic import commit_store, commits


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


def training_state():
    return hvd.elastic.TorchState(torch.nn.Linear(3, 2), batch=0)


def test_commit_of_another_object_state_is_ignored_with_one_line(store, monkeypatch, capsys):
    hvd.elastic.ObjectState(step=7).commit()
    for other in (lambda: hvd.elastic.ObjectState(epoch=0), training_state):
        new_process(monkeypatch)
        state = other()
        enter(state)
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "commit 1 is ignored, it does not fit this state" in said
        assert commits.newest() == 0 == store.told
    training_state().commit()
    new_process(monkeypatch)
    state = hvd.elastic.ObjectState(batch=3)
    enter(state)
    assert state.batch == 3 and "it does not fit this state" in capsys.readouterr().err


def test_object_state_that_was_given_a_commit_keeps_it(store):
    """A newcomer's store gets what rank 0 has committed, in the sync."""
    state = hvd.elastic.ObjectState(step=0)
    state._bcast_object = lambda mine: ({"step": 5}, 3)
    commits._newest = 3  # as the ranks agree
    state._sync_in_loop()
    assert store.newest[0] == 3 and commit_store.inherited().values() == {"step": 5}
    before = store.newest
    state.sync()  # outside of the loop nothing says of which commit it is
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
