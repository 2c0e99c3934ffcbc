"""States of the runs of a script, for tests."""

import torch

import horovod.torch as hvd

STEPS = 4


class Killed(BaseException):
    """Stands for the end of the process."""


def weights(value=0.0):
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(value)
    return model


def torch_state(**values):
    model = weights()
    return hvd.elastic.TorchState(model, torch.optim.SGD(model.parameters(), 0.1), step=0, **values)


def object_state(**values):
    assert not values
    return hvd.elastic.ObjectState(step=0, total=0.0)


def add(state, amount):
    if isinstance(state, hvd.elastic.TorchState):
        state.model.weight.data += amount
    else:
        state.total += amount


def total(state):
    return state.model.weight.item() if isinstance(state, hvd.elastic.TorchState) else state.total
