"""A default device of torch changes nothing that Horovod makes for itself. On any number of ranks."""

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd
from optimizer_training import assert_same, distributed
from test_torch_amp import Scaler

pytestmark = pytest.mark.skipif(not hasattr(torch.device, "__enter__"), reason="this torch has no default device")


def test_sampler():
    wanted = list(hvd.elastic.ElasticSampler(list(range(20)), shuffle=True))
    with torch.device("meta"):
        assert list(hvd.elastic.ElasticSampler(list(range(20)), shuffle=True)) == wanted


def test_results():
    own = torch.arange(3.0)
    with torch.device("meta"):
        results = [
            hvd.allreduce(own),
            hvd.allgather(own),
            hvd.allgather(own[:0]),
            hvd.broadcast(own, 0),
            hvd.reducescatter(own),
            hvd.grouped_allreduce([own])[0],
        ]
        assert hvd.broadcast_object({"value": own}, 0)["value"].tolist() == [0.0, 1.0, 2.0]
    assert {result.device.type for result in results} == {"cpu"}


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_training(op):
    model = nn.Linear(3, 2)
    hvd.broadcast_parameters(model.state_dict(), 0)
    x = torch.ones(1, 3)
    with torch.device("meta"):
        optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), op=op)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        for _ in range(2):
            scaler = Scaler(2.0)
            scaler.scale(model(x * (1 + hvd.rank())).sum()).backward()
            scaler.step(optimizer)
            optimizer.zero_grad()
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert_same(model, model)
