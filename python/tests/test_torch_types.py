"""Every operation on every type that it takes; see test_torch_ops.py and test_torch_allreduce.py for what they compute. On any
number of ranks."""

import pytest
import torch

import horovod.torch as hvd
from tensors_of_ranks import ALL, FLOATS, NUMBERS

REDUCTIONS = {"sum": hvd.Sum, "average": hvd.Average, "min": hvd.Min, "max": hvd.Max}
EXTREMES = {"min": hvd.Min, "max": hvd.Max}


def reduced(values, name):
    """What a reduction of each rank's `values(rank)` (small whole numbers) gives."""
    gathered = [values(rank) for rank in range(hvd.size())]
    if name in EXTREMES:
        return (min if name == "min" else max)(gathered)
    total = sum(gathered)
    return total if name == "sum" else total / hvd.size()


def value(rank):
    return 2 * rank * hvd.size()


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", sorted(REDUCTIONS))
def test_reductions(dtype, name):
    size, op = hvd.size(), REDUCTIONS[name]
    tensor = torch.full((size, 2), value(hvd.rank()), dtype=dtype)
    wanted = torch.full((size, 2), reduced(value, name)).to(dtype)
    assert torch.equal(hvd.allreduce(tensor, op=op), wanted)
    for result in hvd.grouped_allreduce([tensor, tensor], op=op):
        assert torch.equal(result, wanted)
    assert torch.equal(hvd.reducescatter(tensor, op=op), wanted[:1])
    for result in hvd.grouped_reducescatter([tensor, tensor], op=op):
        assert torch.equal(result, wanted[:1])
    assert torch.equal(hvd.allreduce_(tensor, op=op), wanted)


@pytest.mark.parametrize("name", sorted(EXTREMES))
def test_reductions_of_truth_values(name):
    tensor = torch.full((hvd.size(), 2), hvd.rank() == 0)
    wanted = name == "max" or hvd.size() == 1
    assert hvd.allreduce(tensor, op=EXTREMES[name])[0, 0].item() is wanted
    assert hvd.reducescatter(tensor, op=EXTREMES[name])[0, 0].item() is wanted


@pytest.mark.parametrize("dtype", FLOATS)
def test_adasum_of_equal_tensors_is_the_tensor(dtype):
    tensor = torch.tensor([1.0, -2.0, 4.0], dtype=dtype)
    for result in (
        hvd.allreduce(tensor, op=hvd.Adasum),
        *hvd.grouped_allreduce([tensor, tensor], op=hvd.Adasum),
    ):
        assert result.dtype == dtype and torch.allclose(result.float(), tensor.float(), rtol=2e-2)


@pytest.mark.parametrize("dtype", ALL)
def test_what_moves_values(dtype):
    size = hvd.size()
    ones = torch.ones(size, 2, dtype=dtype)
    assert torch.equal(hvd.allgather(ones), ones.repeat(size, 1))
    assert torch.equal(hvd.grouped_allgather([ones, ones])[1], ones.repeat(size, 1))
    assert torch.equal(hvd.broadcast(ones * (hvd.rank() == 0), 0), ones)
    assert torch.equal(hvd.alltoall(ones), ones)
    assert torch.equal(hvd.alltoall(ones, [1] * size)[0], ones)
