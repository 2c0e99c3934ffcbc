"""Training and collectives in functions that torch compiles. Runs on any number of ranks."""

import pytest
import torch

import horovod.torch as hvd
from test_torch_optimizer import OPTIMIZERS, assert_same, batches, distributed, net, train


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this torch has no compiler")
def test_compiled_model():
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()))
    compiled = torch.compile(model, backend="aot_eager")
    train(compiled, optimizer, mine)
    train(reference, OPTIMIZERS["sgd"](reference.parameters()), joined)
    assert_same(model, reference)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this torch has no compiler")
def test_collective_in_compiled_function():
    @torch.compile(backend="aot_eager")
    def function(x):
        return hvd.allreduce(x * 2, op=hvd.Sum, name="compiled") + 1

    assert torch.equal(function(torch.ones(3)), torch.full((3,), 2.0 * hvd.size() + 1))
