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


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this torch has no compiler")
def test_collectives_in_compiled_functions_compile_nothing_again():
    dynamo = pytest.importorskip("torch._dynamo")
    if not hasattr(dynamo.config, "error_on_recompile"):
        pytest.skip("this torch does not say when it compiles again")
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), [("parameter", parameter)])

    @torch.compile(backend="eager")
    def function(tensors):
        results = []
        for number, tensor in enumerate(tensors):
            results.append(hvd.allreduce(tensor * 2, op=hvd.Sum, name=f"compiled.{number}"))
        hvd.barrier()
        loss = hvd.allreduce(parameter * tensors[1], name="of a gradient").sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return [result + 1 for result in results]

    tensors = [torch.full((3,), float(number)) for number in range(12)]
    with dynamo.config.patch(error_on_recompile=True):
        for _ in range(3):
            results = function(tensors)
    for number, result in enumerate(results):
        assert torch.equal(result, torch.full((3,), 2.0 * number * hvd.size() + 1))
