"""Commits that compare what all ranks should hold alike. The agent's memory is played by the test, and so is the job's policy."""

import re

import pytest
import torch

import horovod.torch as hvd
from horovod import _ffi
from horovod.common import basics
from horovod.common.exceptions import HorovodInternalError, StateCorrupted
from horovod.elastic import commits, corruption

OUTLIER = 1


def has_majority():
    return hvd.size() > 2


class Training:
    def __init__(self, **values):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
        adam = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.optimizer = hvd.DistributedOptimizer(adam, named_parameters=self.model.named_parameters())
        self.state = hvd.elastic.TorchState(self.model, self.optimizer, step=0, **values)

    def step(self):
        self.optimizer.zero_grad()
        data = torch.randn(8, 4, generator=torch.Generator().manual_seed(100 * self.state.step + hvd.rank()))
        self.model(data).pow(2).mean().backward()
        self.optimizer.step()
        self.state.step += 1

    def begin(self):
        for _ in range(3):
            self.step()
            self.state.commit()


def flip(tensor):
    if hvd.rank() == OUTLIER:
        tensor.detach().reshape(-1)[:1].view(torch.int32).bitwise_xor_(1 << 20)


@pytest.fixture
def job(store, monkeypatch):
    """A store, and a function that sets the policy."""
    if hvd.size() == 1:
        pytest.skip("there is nobody to compare with")

    def chosen(policy):
        monkeypatch.setattr(_ffi, "on_corruption", lambda: policy)
        return store

    chosen(corruption.WARN)
    return chosen


def alarms(capsys):
    return [line for line in capsys.readouterr().err.splitlines() if re.search("corruption|compared any more", line)]


def text_of(piece):
    who = (
        "rank 1 on host .* differs from the other ranks"
        if has_majority()
        else "rank 0 and rank 1 differ from each other"
    )
    return f"silent data corruption at commit 4: {who} in {re.escape(piece)}"


def test_outlier_neither_seals_nor_publishes_until_it_is_equal_again(job, capsys):
    store, training = job(corruption.WARN), Training()
    training.begin()
    assert not alarms(capsys) and store.newest[0] == 3
    training.step()
    flip(training.model[0].weight)
    training.state.commit()
    told = alarms(capsys)
    assert len(told) == (hvd.rank() == 0) and all(
        re.search(text_of("parameters (model.0.weight)"), line) for line in told
    )
    excluded = has_majority() and hvd.rank() == OUTLIER
    assert (store.newest[0], store.told, commits.newest()) == ((3, 0, 4) if excluded else (4, 4, 4))
    training.step()
    training.state.commit()
    assert (store.newest[0], store.told) == ((3, 0) if excluded else (5, 5)) and not alarms(capsys)
    training.state.restore()
    assert training.state.step == (3 if excluded else 5)
    training.state.step = 5
    hvd.broadcast_parameters(training.model.state_dict(), 0)
    hvd.broadcast_optimizer_state(training.optimizer, 0)
    for _ in range(2):
        training.step()
        training.state.commit()
        assert not alarms(capsys)
    assert (store.newest[0], store.told) == (7, 7)


def test_another_tensor_is_still_compared_after_an_alarm(job, capsys):
    training = Training()
    training.begin()
    flip(training.model[0].weight)
    training.state.commit()
    assert len(alarms(capsys)) == (hvd.rank() == 0)
    rank = 2  # not 0, with which all would go back
    if hvd.rank() == rank:
        training.model[2].bias.data += 1
    training.state.commit()
    told = alarms(capsys)
    if has_majority() and hvd.rank() == 0:
        assert f"rank {rank} on host" in told[0] and "model.2.bias" in told[0]


@pytest.mark.parametrize("tensor", ["exp_avg", "exp_avg_sq", "bias"])
def test_kinds(job, capsys, tensor):
    training = Training()
    training.begin()
    training.step()
    weight = training.model[2].weight
    flip(training.model[2].bias if tensor == "bias" else training.optimizer.state[weight][tensor])
    training.state.commit()
    what = "parameters (model.2.bias)" if tensor == "bias" else f"optimizer state (optimizer['state'][4]['{tensor}'])"
    assert all(re.search(text_of(what), line) for line in alarms(capsys)) or hvd.rank() > 0


def test_what_ranks_hold_for_themselves_is_no_fault(job, capsys):
    own, table = torch.nn.Linear(2, 2), {"mean": torch.zeros(3)}
    later = torch.nn.Linear(2, 2)
    for module in (own, later):
        for parameter in module.parameters():
            parameter.data.fill_(0)
    training = Training(own=own, later=later, table=table)
    for step in range(9):
        training.step()
        own.weight.data += hvd.rank()
        table["mean"] += hvd.rank()
        if hvd.rank() == 0 and step > 4:
            later.weight.data += 1  # as an average of the parameters that begins late
        training.state.commit()
    assert not alarms(capsys) and commits.newest() == 9
    assert not torch.equal(hvd.allreduce(training.model[1].running_mean), training.model[1].running_mean), (
        "buffers differ"
    )


def test_rank_whose_save_fails_does_not_block_the_others(job, capsys):
    training = Training()
    training.begin()
    if hvd.rank() == OUTLIER:
        save = training.state.save

        def broken():
            save()
            raise RuntimeError("the user's own")

        training.state.save = broken
        with pytest.raises(RuntimeError):
            training.state.commit()
        training.state.save = save
    else:
        training.state.commit()
    training.step()
    training.state.commit()
    assert not alarms(capsys) and commits.newest() == 5


def test_ranks_that_begin_to_train_apart(job, capsys):
    training = Training()
    training.begin()
    for _ in range(3):
        for parameter in training.model.parameters():
            parameter.data += hvd.rank()
        training.state.commit()
    told = alarms(capsys)
    assert len(told) == (hvd.rank() == 0)
    if has_majority():
        assert all("differ between all ranks since commit 4: they are not compared any more" in line for line in told)
    assert commits.newest() == 6


def test_evicted_rank_ends_and_the_others_keep_the_commit_before(job, capsys, monkeypatch):
    failures = []
    monkeypatch.setattr(basics, "fail", lambda text, ends_job: failures.append(ends_job))
    store, training = job(corruption.EVICT), Training()
    training.begin()
    training.step()
    flip(training.model[0].weight)
    evicted = has_majority() and hvd.rank() == OUTLIER
    with pytest.raises(StateCorrupted if evicted else HorovodInternalError) as caught:
        training.state.commit()
    assert "3" in str(caught.value).rpartition("commit ")[2] and failures == [False] * evicted
    assert store.newest[0] == 3 == commits.newest()
    training.state.restore()
    assert training.state.step == 3
    training.state.commit()
    assert commits.newest() == 4 and len(alarms(capsys)) == (hvd.rank() == 0)


def test_all_ranks_end_if_the_job_shall(job, monkeypatch):
    failures = []
    monkeypatch.setattr(basics, "fail", lambda text, ends_job: failures.append(ends_job))
    store, training = job(corruption.END), Training()
    training.begin()
    flip(training.model[0].weight)
    with pytest.raises(StateCorrupted, match=text_of("parameters (model.0.weight)")):
        training.state.commit()
    assert failures == [True] and store.newest[0] == 3


def test_nothing_is_compared_if_it_shall_not(job, capsys):
    store, training = job(corruption.OFF), Training()
    training.begin()
    flip(training.model[0].weight)
    training.state.commit()
    assert not alarms(capsys) and store.newest[0] == 4


def test_rank_that_lacks_a_tensor_differs(job, capsys):
    training = Training()
    training.begin()
    if hvd.rank() == OUTLIER:
        del training.optimizer.state[training.model[2].bias]["exp_avg"]
    training.state.commit()
    assert all(
        re.search(text_of("optimizer state (optimizer['state'][5]['exp_avg'])"), line) for line in alarms(capsys)
    )
