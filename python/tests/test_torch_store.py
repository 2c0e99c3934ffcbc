"""Commits of a TorchState that outlive their process. Runs in one process."""

import io
import pickle
import threading

import pytest
import torch

import horovod.torch as hvd
from agents_store import enter, new_process
from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError
from horovod.elastic import commit_protocol, commits, tensor_state


def training(width=3, **values):
    torch.manual_seed(torch.initial_seed() + 1)
    model = torch.nn.Sequential(torch.nn.Linear(width, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    return hvd.elastic.TorchState(model, optimizer, batch=0, **values)


def step(state):
    state.optimizer.zero_grad()
    state.model(torch.randn(4, state.model[0].in_features)).pow(2).sum().backward()
    state.optimizer.step()
    state.batch += 1


def contents(state):
    tensors = list(state.model.state_dict().values())
    for group in state.optimizer.state_dict()["state"].values():
        tensors += [value for value in group.values() if isinstance(value, torch.Tensor)]
    return [tensor.clone() for tensor in tensors] + [torch.tensor(state.batch)]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


def test_restore_gives_the_last_commit_out_of_the_store(store):
    state = training(history=[])
    for _ in range(4):
        step(state)
        state.history.append(state.batch)
        state.commit()
        committed = contents(state)
        assert store.newest[0] == commits.newest() == store.told
        step(state)
        state.history.append("lost")
        state.restore()
        assert same(contents(state), committed)
        assert state.history == list(range(1, state.batch + 1))
    assert len(store.slots) == 2


def test_next_process_continues_from_the_commit(store, monkeypatch, capsys):
    state = training(history=[])
    for _ in range(3):
        step(state)
        state.history.append(object)
        state.commit()
    committed = contents(state)
    step(state)
    new_process(monkeypatch)
    fresh = training(history=[])
    assert not same(contents(fresh), committed)
    enter(fresh)
    assert same(contents(fresh), committed)
    assert fresh.history == [object] * 3
    assert commits.newest() == 3 == store.told
    said = capsys.readouterr().err
    assert said == "Horovod: going on from commit 3, kept in memory\n"
    step(fresh)
    fresh.commit()
    assert store.newest[0] == 4


def test_world_that_breaks_in_the_first_sync_leaves_the_commit(store, monkeypatch):
    state = training()
    step(state)
    state.commit()
    committed = contents(state)
    new_process(monkeypatch)
    fresh = training()

    def fail(known):
        raise HorovodInternalError("a rank is gone")

    with monkeypatch.context() as patch:
        patch.setattr(commits, "agree", fail)
        with pytest.raises(HorovodInternalError):
            enter(fresh)
    # What it says that it can restore, when it asks for the next world, is what it restores.
    assert store.told == 1 == commits.newest()
    step(fresh)
    fresh.restore()
    assert same(contents(fresh), committed)


def test_commit_that_the_others_did_not_keep_is_not_sealed(store, monkeypatch):
    state = training()
    state.commit()
    committed = contents(state)
    step(state)

    def fail(operation):
        raise HorovodInternalError("a rank is gone")

    with monkeypatch.context() as patch:
        patch.setattr(commits, "end", fail)
        with pytest.raises(HorovodInternalError):
            state.commit()
    assert store.newest[0] == 1
    state.restore()
    assert same(contents(state), committed)


def test_save_outside_a_commit_leaves_the_store_alone(store):
    state = training()
    state.commit()
    sealed = bytes(store.newest[1])
    step(state)
    state.save()
    saved = contents(state)
    step(state)
    state.restore()
    assert same(contents(state), saved)
    assert store.newest[0] == 1 and bytes(store.newest[1]) == sealed and store.told == 0


def test_process_whose_state_does_not_fit_the_commit_ends(store, monkeypatch):
    """It must not start from the beginning: it could lead a world without the commit."""
    training().commit()
    for other in (lambda: training(width=5), lambda: training(more=1)):
        new_process(monkeypatch)
        with pytest.raises(
            ValueError, match=r"^commit 1 of this job does not fit the state that a new process builds: [^\n]*$"
        ):
            enter(other())
        assert store.newest[0] == 1 == store.told


def test_commit_with_a_group_that_a_new_process_has_not_made(store, monkeypatch):
    state = training()
    state.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))]})
    state.commit()
    new_process(monkeypatch)
    with pytest.raises(ValueError, match="parameter groups; build it with"):
        enter(training())
    assert store.newest[0] == 1 == store.told


def test_values_that_cannot_be_pickled_are_committed_as_before(store, capsys):
    class Odd:
        def __deepcopy__(self, memo):
            return self

        def __reduce__(self):
            raise TypeError("no way")

    state = training(odd=Odd())
    for _ in range(2):
        state.commit()
        committed = contents(state)
        step(state)
        state.restore()
        assert same(contents(state), committed)
    assert store.newest is None
    assert capsys.readouterr().err.count("commits will not outlive this process: no way") == 1


class OfTheHandler(Exception):
    pass


def raise_as_a_handler(*args, **kwargs):
    raise OfTheHandler()


@pytest.mark.parametrize("where", [(pickle, "dumps"), (_ffi, "store_begin"), (_ffi, "store_append"), (io, "BytesIO")])
def test_what_the_handler_of_a_signal_raises_is_not_lost(store, monkeypatch, where):
    state = training()
    with monkeypatch.context() as interrupted:
        interrupted.setattr(*where, raise_as_a_handler)
        with pytest.raises(OfTheHandler):
            state.commit()
    state.commit()
    assert store.newest is not None


def test_checkpoint_is_written_from_a_commit_that_stays(store, tmp_path, monkeypatch):
    state = training(checkpoint_dir=str(tmp_path), checkpoint_every=1)
    may_go_on = threading.Event()
    write = state._checkpoints._write

    def slowly(*arguments):
        may_go_on.wait(60)
        write(*arguments)

    monkeypatch.setattr(state._checkpoints, "_write", slowly)
    step(state)
    state.commit()
    committed = contents(state)
    for _ in range(4):
        step(state)
        state.commit()
    assert len(store.slots) == 3
    may_go_on.set()
    state._checkpoints.wait()
    store.newest = None
    new_process(monkeypatch)
    fresh = training(checkpoint_dir=str(tmp_path))
    enter(fresh)
    assert same(contents(fresh), committed)


@pytest.mark.parametrize("newer", ["memory", "disk"])
def test_memory_and_disk_the_newer_counts(store, monkeypatch, tmp_path, newer):
    state = training(checkpoint_dir=str(tmp_path), checkpoint_every=2)
    for _ in range(3):
        step(state)
        state.commit()
        if state.batch == 1:
            old = (1, bytearray(store.newest[1]))
    state._checkpoints.wait()
    if newer == "disk":
        store.newest = old
        store.slots.append(old[1])
    new_process(monkeypatch)
    fresh = training(checkpoint_dir=str(tmp_path), checkpoint_every=2)
    enter(fresh)
    assert commits.newest() == fresh.batch == {"memory": 3, "disk": 2}[newer]


@pytest.mark.parametrize("others_train", [False, True])
def test_new_process_says_which_checkpoint_it_holds_if_no_rank_trains(
    store, monkeypatch, tmp_path, capsys, others_train
):
    state = training(checkpoint_dir=str(tmp_path))
    for _ in range(3):
        step(state)
        state.commit()
        state._checkpoints.wait()
    committed = contents(state)
    store.newest = store.told = None  # the host has gone
    (tmp_path / ".checkpoint-9.hvd.tmp").write_bytes(b"of one who is writing")
    new_process(monkeypatch)
    monkeypatch.setattr(_ffi, "is_deferred", lambda: True)
    monkeypatch.setattr(tensor_state, "rank", lambda: 2 if others_train else 0)
    fresh = training(checkpoint_dir=str(tmp_path))
    capsys.readouterr()
    fresh._inherit(None)
    if others_train:
        assert store.told is None and commits.newest() == 0 and fresh.batch == 0
        return
    assert store.told == commits.newest() == 3
    step(fresh)
    fresh.restore()
    assert same(contents(fresh), committed)
    assert (tmp_path / ".checkpoint-9.hvd.tmp").exists()
    monkeypatch.setattr(_ffi, "is_deferred", lambda: False)
    commit_protocol.synchronize(fresh)
    assert same(contents(fresh), committed)
    assert store.told == commits.newest() == 3
    assert capsys.readouterr().err.count("going on from commit 3") == 1


def test_second_state_keeps_its_commits_by_itself(store):
    first, second = training(), training()
    first.commit()
    kept = contents(first)
    for _ in range(3):
        step(second)
        second.commit()
    assert store.newest[0] == 1
    step(first)
    first.restore()
    assert same(contents(first), kept)
