"""Gradients that the script changes before they are reduced: the optimizer warns, once. Runs on any number of ranks."""

import contextlib
import warnings

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd
from optimizer_training import assert_same, batches, distributed, loss_of, net

PASSES = 2
BATCHES = 5  # the last group has one


@contextlib.contextmanager
def warnings_of_changes():
    """Yields a list that has, at the end, the warnings of changed gradients."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [each for each in caught if "was changed" in str(each.message)]


def nothing(model, optimizer):
    pass


def clip(model, optimizer):
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)


def clip_in_a_loop(model, optimizer):
    for p in model.parameters():
        p.grad.clamp_(-0.001, 0.001)


def clip_by_replacing(model, optimizer):
    for p in model.parameters():
        p.grad = p.grad.clamp(-0.001, 0.001)


def synchronize_and_clip(model, optimizer):
    optimizer.synchronize()
    clip(model, optimizer)


def look(model, optimizer):
    sum(p.grad.norm() for p in model.parameters()).item()


def drop(model, optimizer):
    model.zero_grad(set_to_none=True)


def train(model, optimizer, data, prepare=nothing, passes=PASSES, epochs=2):
    synchronized = prepare is synchronize_and_clip and hasattr(optimizer, "skip_synchronize")
    for _ in range(epochs):
        for i, batch in enumerate(data):
            loss_of(model, batch).backward()
            if (i + 1) % passes == 0 or i + 1 == len(data):
                prepare(model, optimizer)
                with optimizer.skip_synchronize() if synchronized else contextlib.nullcontext():
                    optimizer.step()
                optimizer.zero_grad()


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.several_ranks
@pytest.mark.parametrize("change", [clip, clip_in_a_loop, clip_by_replacing])
@pytest.mark.parametrize("groups", [None, 2])
def test_a_change_of_an_incomplete_group_warns_once(change, groups):
    model = net()
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES, groups=groups)
    with warnings_of_changes() as found:
        train(model, optimizer, batches(BATCHES)[1], change)
    (warning,) = found
    assert "optimizer.synchronize()" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.several_ranks
def test_a_change_after_no_sync_alone_warns():
    model = net()
    optimizer = distributed(model, sgd(model))
    with warnings_of_changes() as found:
        with optimizer.no_sync():
            loss_of(model, batches(1)[1][0]).backward()
        clip(model, optimizer)
        optimizer.step()
    assert len(found) == 1


@pytest.mark.several_ranks
def test_a_change_before_synchronize_warns():
    model = net()
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES)
    loss_of(model, batches(1)[1][0]).backward()
    clip(model, optimizer)
    with warnings_of_changes() as found:
        optimizer.synchronize()
    assert len(found) == 1


@pytest.mark.parametrize("prepare", [nothing, look, drop, synchronize_and_clip])
@pytest.mark.parametrize("groups", [None, 2])
def test_no_false_warning_of_an_incomplete_group(prepare, groups):
    model = net()
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES, groups=groups)
    with warnings_of_changes() as found:
        train(model, optimizer, batches(BATCHES)[1], prepare)
    assert not found


@pytest.mark.parametrize("count", [PASSES, 2 * PASSES])
def test_no_warning_of_complete_groups(count):
    model = net()
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES)
    with warnings_of_changes() as found:
        train(model, optimizer, batches(count)[1], clip)
    assert not found


def test_no_warning_of_a_hook_that_changes_gradients_in_backward():
    model = net()
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES)
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        pytest.skip("this torch has no such hooks")

    def halve(p):
        p.grad.mul_(0.5)

    next(model.parameters()).register_post_accumulate_grad_hook(halve)  # it runs after the optimizer's
    with warnings_of_changes() as found:
        loss_of(model, batches(1)[1][0]).backward()
        optimizer.step()
    assert not found


def test_no_warning_of_sparse_gradients():
    model = nn.Embedding(4, 2, sparse=True)
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES)
    with warnings_of_changes() as found:
        for _ in range(PASSES + 1):
            model(torch.tensor([hvd.rank() % 4])).sum().backward()
        optimizer.step()
    assert not found


def test_no_warning_after_a_pass_that_failed():
    model = net()
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES)
    batch = batches(1)[1][0]
    with warnings_of_changes() as found:
        loss_of(model, batch).backward()
        first = next(model.parameters())
        hook = first.register_hook(lambda grad: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            loss_of(model, batch).backward()
        hook.remove()
        optimizer.step()
    assert not found


def test_clipping_after_synchronize_equals_one_process():
    """What the warning and the documentation advise."""
    model, reference = net(), net()
    joined, mine = batches(BATCHES)
    optimizer = distributed(model, sgd(model), backward_passes_per_step=PASSES)
    train(model, optimizer, mine, synchronize_and_clip)
    train(reference, sgd(reference), joined, clip)
    assert_same(model, reference)
