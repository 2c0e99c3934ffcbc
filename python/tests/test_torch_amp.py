"""Gradient scalers with DistributedOptimizer: all ranks skip the same steps. Runs on any number of
ranks."""

import copy

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd
from optimizer_training import OPTIMIZERS, assert_same, batches, distributed, loss_of, net


class Scaler:
    """torch's GradScaler in short, for versions whose scaler needs CUDA; the same protocol."""

    def __init__(self, init_scale):
        self.scale_factor, self.skipped, self._found_inf = init_scale, 0, None

    def scale(self, loss):
        return loss * self.scale_factor

    def unscale_(self, optimizer):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        self._found_inf = not all(torch.isfinite(grad).all() for grad in grads)
        for grad in grads:
            grad.div_(self.scale_factor)

    def step(self, optimizer):
        if self._found_inf is None:
            self.unscale_(optimizer)
        if self._found_inf:
            self.skipped += 1
        else:
            optimizer.step()

    def update(self):
        if self._found_inf:
            self.scale_factor *= 0.5
        self._found_inf = None

    def get_scale(self):
        return self.scale_factor


def scalers():
    yield Scaler
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        yield lambda init_scale: torch.amp.GradScaler("cpu", init_scale=init_scale)


@pytest.mark.parametrize("make_scaler", list(scalers()))
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_amp_skips_the_same_steps_on_all_ranks(make_scaler, clip, accumulate):
    """One rank's loss is infinite at one step; plain scaler code, as for one process."""
    model, reference = net(), net()
    joined, mine = batches(6)
    optimizer = distributed(model, OPTIMIZERS["adam"](model.parameters()), backward_passes_per_step=accumulate)
    plain = OPTIMIZERS["adam"](reference.parameters())
    for m, o, data, broken in (
        (model, optimizer, mine, hvd.rank() == hvd.size() - 1),
        (reference, plain, joined, True),
    ):
        scaler = make_scaler(1024.0)
        for i, batch in enumerate(data):
            loss = loss_of(m, batch)
            if i == 2 and broken:
                loss = loss * float("inf")
            scaler.scale(loss).backward()
            if (i + 1) % accumulate == 0:
                if clip:
                    scaler.unscale_(o)
                    nn.utils.clip_grad_norm_(m.parameters(), 0.5)
                scaler.step(o)
                scaler.update()
                o.zero_grad()
        assert scaler.get_scale() == 512.0
    assert_same(model, reference)


@pytest.mark.parametrize("make_scaler", list(scalers()))
def test_amp_with_a_layer_that_one_rank_alone_uses(make_scaler):
    model = nn.ModuleDict({"all": net(), "one": nn.Linear(3, 3)})
    _, mine = batches(3)
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1))
    scaler = make_scaler(1024.0)
    for x, y in mine:
        found = model["all"](x)
        if hvd.rank() == hvd.size() - 1:
            found = model["one"](found)
        scaler.scale(nn.functional.mse_loss(found, y)).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert scaler.get_scale() == 1024.0
    assert_same(model, copy.deepcopy(model))


@pytest.mark.parametrize("make_scaler", list(scalers()))
def test_amp_with_adasum_skips_the_same_steps(make_scaler):
    model = net()
    _, mine = batches(3)
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1), op=hvd.Adasum)
    scaler = make_scaler(1024.0)
    for i, batch in enumerate(mine):
        factor = float("inf") if i == 1 and hvd.rank() == 0 else 1.0
        scaler.scale(loss_of(model, batch) * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert scaler.get_scale() == 512.0
    assert_same(model, copy.deepcopy(model))


@pytest.mark.parametrize("make_scaler", list(scalers()))
def test_amp_with_a_short_last_group_of_passes(make_scaler):
    model = net()
    _, mine = batches(2)
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1), backward_passes_per_step=3)
    scaler = make_scaler(1024.0)
    for i, batch in enumerate(mine):
        factor = float("inf") if i == 1 and hvd.rank() == 0 else 1.0
        scaler.scale(loss_of(model, batch) * factor).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert_same(model, copy.deepcopy(model))
