"""Ranks whose optimizers step with different learning rates. On any number of ranks."""

import pytest
import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodRequestError
from test_torch_optimizer import batches, distributed, loss_of, net

DIFFERENT = r"^The ranks' optimizers have stepped with different learning rates, .* this rank's were "


def step(model, optimizer, batch):
    optimizer.zero_grad()
    loss_of(model, batch).backward()
    optimizer.step()


def pair(**fields):
    model = net()
    return model, distributed(model, torch.optim.SGD(model.parameters(), lr=0.1), **fields)


@pytest.mark.several_ranks
def test_a_scheduler_that_decides_by_the_own_loss_is_an_error_at_the_next_step():
    model, optimizer = pair()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    batch = batches(1)[1][0]
    for loss in (1.0, 2.0 if hvd.rank() == 0 else 0.5):
        step(model, optimizer, batch)
        scheduler.step(loss)
    step(model, optimizer, batch)  # no rank knows yet
    own = 0.05 if hvd.rank() == 0 else 0.1
    with pytest.raises(HorovodRequestError, match=DIFFERENT + rf"{own}\. "):
        step(model, optimizer, batch)
    # As after scheduler.load_state_dict() or a broadcast.
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    optimizer.load_state_dict(optimizer.state_dict())
    step(model, optimizer, batch)
    step(model, optimizer, batch)


def test_equal_rates_are_accepted():
    for rate in (0.1, torch.tensor(0.1), 1):
        model, optimizer = pair(backward_passes_per_step=1)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for group in optimizer.param_groups:
            group["lr"] = rate
        for number, batch in enumerate(batches(4)[1]):
            for group in optimizer.param_groups:  # another last bit on each rank
                group["lr"] *= 1 + 1e-15 * hvd.rank()
            step(model, optimizer, batch)
            scheduler.step()
            if number == 1 and hvd.rank() == 0:
                optimizer.load_state_dict(optimizer.state_dict())  # it has no rates to compare then


@pytest.mark.several_ranks
def test_with_unused_gradients_and_accumulation():
    model, optimizer = pair(backward_passes_per_step=2)
    optimizer.param_groups[0]["lr"] = 0.1 * (1 + hvd.rank())
    batch = batches(1)[1][0]
    loss_of(model, batch).backward()
    optimizer.step()
    optimizer.zero_grad()
    model[2].bias.requires_grad_(False)
    loss_of(model, batch).backward()
    with pytest.raises(HorovodRequestError, match=DIFFERENT):
        optimizer.step()


def test_a_schedule_within_epochs_of_different_lengths():
    model, optimizer = pair()
    batch = batches(1)[1][0]
    for epoch in range(2):
        for number in range(2 + (hvd.rank() + epoch) % 2):
            for group in optimizer.param_groups:
                group["lr"] = 0.1 / (1 + number)
            step(model, optimizer, batch)
        hvd.broadcast_parameters(model.state_dict(), hvd.join())
