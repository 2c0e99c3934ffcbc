"""The order of the steps of a commit, and when the methods of a user's own state are called. In one process."""

import pytest
import torch

import horovod.torch as hvd
from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.elastic import commit_protocol, commits
from horovod.elastic.commit_protocol import Commit


class Noting:
    """Notes when its methods are called, around those of hvd's states."""

    def save(self):
        self.note("save")
        super().save()

    def restore(self):
        self.note("restore")
        super().restore()

    def sync(self):
        self.note("sync")
        super().sync()


class Kept:
    """A user's subclass of hvd.elastic.State."""

    def __init__(self, **values):
        super().__init__()
        vars(self).update(values)

    def save(self):
        self.saved = self.step

    def restore(self):
        self.step = self.saved

    def sync(self):
        self.save()


class Direct(Noting, Kept, hvd.elastic.State):
    pass


class Plain(Noting, hvd.elastic.ObjectState):
    pass


class Torch(Noting, hvd.elastic.TorchState):
    pass


@pytest.fixture
def steps(store, monkeypatch):
    """The steps that were taken, in their order."""
    steps = []

    def noted(module, name, step):
        function = getattr(module, name)

        def call(*arguments):
            steps.append(step)
            return function(*arguments)

        monkeypatch.setattr(module, name, call)

    noted(commits, "begin", "begin")
    noted(commits, "end", "end")
    noted(commits, "agree", "agree")
    noted(_ffi, "store_begin", "into the store")
    noted(_ffi, "store_seal", "seal")
    noted(_ffi, "set_commit", "tell")
    return steps


def state_of(kind, steps):
    values = {"model": torch.nn.Linear(2, 2)} if kind is Torch else {}
    kind.note = staticmethod(steps.append)
    state = kind(step=0, **values)
    steps.clear()
    return state


STAGED = ["begin", "save", "into the store", "end", "seal", "tell"]


@pytest.mark.parametrize("kind, order", [(Direct, ["begin", "end", "save", "tell"]), (Plain, STAGED), (Torch, STAGED)])
def test_commit_saves_during_the_operation_if_that_can_be_undone(steps, kind, order):
    state = state_of(kind, steps)
    state.commit()
    assert steps == order


LATE = ["begin", "end", "save", "into the store", "seal", "tell"]


@pytest.mark.parametrize("kind, order", [(Direct, ["begin", "end", "save", "tell"]), (Plain, LATE), (Torch, LATE)])
def test_check_of_the_hosts_commits_only_before_a_change(steps, kind, order):
    state = state_of(kind, steps)
    state.check_host_updates()
    assert steps == ["begin", "end"]
    steps.clear()
    state.on_hosts_updated(1.0, 1)
    with pytest.raises(HostsUpdatedInterrupt):
        state.check_host_updates()
    assert steps == order


@pytest.mark.parametrize(
    "kind, first, later",
    [
        # Its own sync has saved, and that save can't wait.
        (Direct, ["sync", "save", "agree", "save", "tell"], ["sync", "save", "agree", "save", "tell"]),
        *[
            (kind, ["sync", "save", "agree", "tell"], ["sync", "save", "into the store", "agree", "seal", "tell"])
            for kind in (Plain, Torch)
        ],
    ],
)
def test_sync_publishes_when_all_ranks_have_the_state(steps, kind, first, later):
    state = state_of(kind, steps)
    commit_protocol.synchronize(state)
    assert steps == first
    steps.clear()
    commit_protocol.synchronize(state, begins_later_run=True)
    assert steps == later


@pytest.mark.parametrize("kind", [Plain, Torch])
def test_save_outside_of_a_commit_is_the_last_save_at_once(steps, kind):
    state = state_of(kind, steps)
    state.commit()
    steps.clear()
    state.step = 5
    state.save()
    assert steps == ["save", "tell"]  # that it can't restore the commit
    state.step = 6
    state.restore()
    assert state.step == 5


@pytest.mark.parametrize("kind", [Plain, Torch])
def test_restore_during_a_commit_drops_what_is_saved(steps, kind):
    state = state_of(kind, steps)
    save = state.save

    def save_and_restore():
        save()
        state.restore()

    state.step, state.save = 5, save_and_restore
    state.commit()
    assert "seal" not in steps and state.step == 0


@pytest.mark.parametrize("kind", [Plain, Torch])
def test_commit_of_which_the_save_fails_is_counted_if_others_may_keep_it(steps, kind):
    state = state_of(kind, steps)
    save = state.save

    def broken():
        save()
        raise RuntimeError("the user's own")

    state.step, state.save = 5, broken
    with pytest.raises(RuntimeError):
        state.commit()
    assert steps == ["begin", "save", "into the store", "end"] and commits.newest() == 1
    state.restore()
    assert state.step == 0
    state.save = save
    state.save()
    assert steps[-1] == "tell", "a later save is still pending"


@pytest.mark.parametrize("kind", [Plain, Torch])
def test_saves_of_another_state_during_a_commit_are_its_own(steps, kind):
    state, other = state_of(kind, steps), state_of(kind, steps)
    save = state.save

    def save_both():
        save()
        other.save()

    state.save, other.step = save_both, 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "end", lambda operation: (_ for _ in ()).throw(HorovodInternalError("broken")))
        with pytest.raises(HorovodInternalError):
            state.commit()
    other.step = 8
    other.restore()
    assert other.step == 7


def test_interruption_belongs_to_the_state_that_was_committed(steps):
    state, other = state_of(Plain, steps), state_of(Plain, steps)
    state.on_hosts_updated(1.0, 1)
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.commit()
    assert commit_protocol.is_interrupted_at_commit(state, caught.value)
    assert not commit_protocol.is_interrupted_at_commit(other, caught.value)
    assert not commit_protocol.is_interrupted_at_commit(state, HostsUpdatedInterrupt())


def test_commit_leaves_nothing_behind(steps):
    state = state_of(Plain, steps)
    commit = Commit(state)
    commit.collect(state.save)
    assert state._commit_under_way is None and commit.snapshot.values == {"step": 0}
    commit_protocol.commit(state)
    assert state._commit_under_way is None
