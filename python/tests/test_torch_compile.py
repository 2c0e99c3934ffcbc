"""Training and collectives in functions that torch compiles. Runs on any number of ranks."""

import warnings

import pytest
import torch

import horovod.torch as hvd
from horovod.torch import _backward_end
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


@pytest.mark.several_ranks
def test_compiled_autograd_is_told_to_synchronize_before_gradients_are_read(monkeypatch):
    compiled = pytest.importorskip("torch._dynamo.compiled_autograd")
    if not hasattr(compiled, "in_compiled_autograd_region"):
        pytest.skip("this torch does not say that it runs a compiled backward()")
    monkeypatch.setattr(_backward_end, "_has_warned", False)
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()))

    def uncompiled(x, y):
        torch.nn.functional.mse_loss(model(x), y).backward()

    with warnings.catch_warnings(record=True) as caught, torch._dynamo.config.patch(compiled_autograd=True):
        warnings.simplefilter("always")
        backward = torch.compile(uncompiled, backend="eager")
        for x, y in mine:
            optimizer.zero_grad()
            backward(x, y)
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
    told = [each for each in caught if "torch._dynamo.config.compiled_autograd" in str(each.message)]
    assert len(told) == (hvd.rank() == 0) and all(each.filename == __file__ for each in told)
    local = OPTIMIZERS["sgd"](reference.parameters())
    for x, y in joined:
        local.zero_grad()
        torch.nn.functional.mse_loss(reference(x), y).backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.1)
        local.step()
    assert_same(model, reference)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this torch has no compiler")
def test_other_backward_passes_cause_no_warning(monkeypatch):
    monkeypatch.setattr(_backward_end, "_has_warned", False)
    model = net()
    _, mine = batches(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(
            torch.compile(model, backend="aot_eager"), distributed(model, OPTIMIZERS["sgd"](model.parameters())), mine
        )
    assert not [each for each in caught if "compiled_autograd" in str(each.message)]
