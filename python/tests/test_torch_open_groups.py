"""Commits within a group of backward passes, whose gradients each rank has for itself. Runs on any number of ranks."""

import warnings

import pytest
import torch

import horovod.torch as hvd
from horovod.elastic import open_groups, tensor_state

TEXT = "a commit came within an accumulation group"


@pytest.fixture(autouse=True)
def elastic(monkeypatch):
    monkeypatch.setattr(tensor_state, "is_elastic", lambda: True)
    monkeypatch.setattr(open_groups, "_has_warned", False)


def training(passes, op=hvd.Average):
    model = torch.nn.Linear(3, 1)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        model.named_parameters(),
        backward_passes_per_step=passes,
        op=op,
    )
    return model, optimizer


def backward(model):
    model(torch.full((2, 3), 1.0 + hvd.rank())).sum().backward()


def said_by(call):
    """The lines of the warning that `call` has caused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught if TEXT in str(each.message)]


@pytest.mark.several_ranks
@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_commit_within_a_group_is_reported_once(is_listed, op):
    model, optimizer = training(2, op)
    values = {"optimizers": [optimizer]} if is_listed else {"optimizer": optimizer}
    state = hvd.elastic.TorchState(model, **values)
    backward(model)
    said = said_by(state.commit) + said_by(state.commit)
    if hvd.rank() == 0:
        (line,) = said
        assert "(backward_passes_per_step=2)" in line and "\n" not in line
    else:
        assert said == []


@pytest.mark.several_ranks
def test_a_commit_after_no_sync_is_reported():
    model, optimizer = training(1)
    state = hvd.elastic.TorchState(model, optimizer)
    with optimizer.no_sync():
        backward(model)
    said = said_by(state.commit)
    assert len(said) == (hvd.rank() == 0) and all("(no_sync())" in line for line in said)


@pytest.mark.parametrize("passes", [1, 2])
def test_commits_at_the_ends_of_groups_are_in_order(passes):
    model, optimizer = training(passes)
    state = hvd.elastic.TorchState(model, optimizer)

    def train():
        state.commit()
        for _ in range(3):
            for _ in range(passes):
                backward(model)
            optimizer.step()
            state.commit()
            optimizer.zero_grad()
            state.commit()
        backward(model)
        optimizer.step()  # also an incomplete group
        state.commit()
        backward(model)
        optimizer.zero_grad()  # drops the group
        state.commit()
        if passes > 1:
            backward(model)
        state.restore()  # drops the group, too
        state.commit()

    assert said_by(train) == []


@pytest.mark.several_ranks
def test_job_that_can_not_continue_elsewhere_gets_no_notice(monkeypatch):
    monkeypatch.setattr(tensor_state, "is_elastic", lambda: False)
    model, optimizer = training(2)
    state = hvd.elastic.TorchState(model, optimizer)
    backward(model)
    assert said_by(state.commit) == []
