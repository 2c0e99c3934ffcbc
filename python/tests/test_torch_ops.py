"""Every collective but allreduce: types, forms, gradients. Runs on any number of ranks."""

import gc

import pytest
import torch

import horovod.torch as hvd
from horovod.torch import _tensors
from tensors_of_ranks import ALL, NUMBERS, ranks_sum

# Allgather.


@pytest.mark.parametrize("dtype", ALL)
def test_allgather_of_different_lengths(dtype):
    tensor = torch.full((hvd.rank(), 3), 1, dtype=dtype)  # rank 0 has no rows
    result = hvd.allgather(tensor)
    assert result.dtype == dtype
    assert torch.equal(result, torch.ones(ranks_sum(lambda r: r), 3, dtype=dtype))


def test_allgather_in_rank_order():
    result = hvd.allgather(torch.full((2, 2), hvd.rank()))
    assert result[:, 0].tolist() == [r for r in range(hvd.size()) for _ in range(2)]


def test_allgather_of_nothing():
    assert hvd.allgather(torch.empty(0, 3)).shape == (0, 3)


def test_allgather_scalar_fails():
    with pytest.raises(IndexError):
        hvd.allgather(torch.tensor(1.0))


def test_allgather_result_outlives_other_operations():
    results = [hvd.allgather(torch.full((1000,), float(i))) for i in range(20)]
    views = [result[-10:] for result in results]
    del results
    gc.collect()
    hvd.allgather(torch.zeros(1000))
    for i, view in enumerate(views):
        assert torch.equal(view, torch.full((10,), float(i)))


def test_allgather_gradient():
    tensor = torch.ones(hvd.rank() + 1, 2, requires_grad=True)
    gathered = hvd.allgather(tensor)
    gathered.backward(torch.arange(float(len(gathered))).unsqueeze(1).expand(-1, 2).contiguous())
    first = sum(range(1, hvd.rank() + 1))
    assert tensor.grad[:, 0].tolist() == [float(first + i) for i in range(hvd.rank() + 1)]


def test_grouped_allgather():
    tensors = [torch.full((2,), hvd.rank()), torch.full((1, 2), 0.5)]
    first, second = hvd.grouped_allgather(tensors, name="gathered")
    assert first.tolist() == [r for r in range(hvd.size()) for _ in range(2)]
    assert torch.equal(second, torch.full((hvd.size(), 2), 0.5))


# Broadcast.


@pytest.mark.parametrize("dtype", ALL)
def test_broadcast_from_every_root(dtype):
    for root in range(hvd.size()):
        tensor = torch.full((3, 2), hvd.rank() % 2, dtype=dtype)
        result = hvd.broadcast(tensor, root)
        assert torch.equal(result, torch.full((3, 2), root % 2, dtype=dtype))
        assert torch.equal(tensor, torch.full((3, 2), hvd.rank() % 2, dtype=dtype))
        assert hvd.broadcast_(tensor, root) is tensor
        assert torch.equal(tensor, result)


def test_broadcast_scalar():
    assert hvd.broadcast(torch.tensor(float(hvd.rank())), 0).item() == 0.0


def test_broadcast_bad_root_fails():
    with pytest.raises(ValueError, match=r"broadcast: root rank .* is not in the process set"):
        hvd.broadcast(torch.ones(2), hvd.size())


def test_broadcast_gradient():
    tensor = torch.ones(2, requires_grad=True)
    hvd.broadcast(tensor, 0).sum().backward()
    assert torch.equal(tensor.grad, torch.full((2,), 1.0 if hvd.rank() == 0 else 0.0))


# Alltoall.


@pytest.mark.parametrize("dtype", ALL)
def test_alltoall_even(dtype):
    tensor = torch.full((2 * hvd.size(), 3), hvd.rank() % 2, dtype=dtype)
    result = hvd.alltoall(tensor)
    assert (
        result[:, 0].tolist()
        == torch.tensor([r % 2 for r in range(hvd.size()) for _ in range(2)], dtype=dtype).tolist()
    )


@pytest.mark.parametrize("splits", [[], torch.tensor([], dtype=torch.int32)])
def test_alltoall_with_empty_splits_is_even(splits):
    tensor = torch.arange(2 * hvd.size()) + hvd.rank()
    output, received = hvd.alltoall(tensor, splits)
    assert output.tolist() == hvd.alltoall(tensor).tolist() and received.tolist() == [2] * hvd.size()


@pytest.mark.parametrize("as_tensor", [True, False])
def test_alltoall_with_splits(as_tensor):
    """Rank r sends i + r rows to rank i, and keeps one more row to itself."""
    splits = [i + hvd.rank() for i in range(hvd.size())]
    tensor = torch.full((sum(splits) + 1, 2), float(hvd.rank()))
    argument = torch.tensor(splits, dtype=torch.int32) if as_tensor else splits
    output, received = hvd.alltoall(tensor, argument)
    assert received.dtype == torch.int32
    assert received.tolist() == [hvd.rank() + r for r in range(hvd.size())]
    expected = [float(r) for r in range(hvd.size()) for _ in range(hvd.rank() + r)]
    assert output[:, 0].tolist() == expected


def test_alltoall_async_returns_the_pair():
    output, received = hvd.synchronize(hvd.alltoall_async(torch.ones(hvd.size())))
    assert torch.equal(output, torch.ones(hvd.size()))
    assert received.tolist() == [1] * hvd.size()


def test_alltoall_bad_splits_fail():
    tensor = torch.ones(2 * hvd.size())
    for splits in (
        torch.ones(hvd.size()),
        [1] * (hvd.size() + 1),
        [3] * hvd.size(),
        [-1] + [1] * (hvd.size() - 1),
    ):
        with pytest.raises(ValueError):
            hvd.alltoall(tensor, splits)
    if hvd.size() > 1:
        with pytest.raises(ValueError):
            hvd.alltoall(torch.ones(hvd.size() + 1))
        with pytest.raises(ValueError):
            hvd.alltoall(torch.ones(hvd.size() + 1), [])


def test_alltoall_gradient():
    tensor = torch.ones(hvd.size() + 1, 2, requires_grad=True)
    output, _ = hvd.alltoall(tensor, [1] * hvd.size())
    (output * (hvd.rank() + 1)).sum().backward()
    assert tensor.grad[:, 0].tolist() == [r + 1.0 for r in range(hvd.size())] + [0.0]


# Reducescatter.


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("extra", [0, 1])
def test_reducescatter_sum(dtype, extra):
    rows = 2 * hvd.size() + extra
    tensor = torch.arange(rows, dtype=dtype).unsqueeze(1).repeat(1, 3)
    result = hvd.reducescatter(tensor, op=hvd.Sum)
    mine = 2 + (1 if hvd.rank() < extra else 0)
    first = 2 * hvd.rank() + min(hvd.rank(), extra)
    assert torch.equal(result, tensor[first : first + mine] * hvd.size())


def test_reducescatter_of_fewer_rows_than_ranks():
    result = hvd.reducescatter(torch.ones(1, 4))
    assert result.shape == (1 if hvd.rank() == 0 else 0, 4)


def test_reducescatter_scaled_average():
    result = hvd.reducescatter(torch.ones(hvd.size()), prescale_factor=2.0, postscale_factor=3.0)
    assert result.tolist() == [6.0]


def test_reducescatter_bad_arguments_fail():
    with pytest.raises(ValueError, match="does not support scalar"):
        hvd.reducescatter(torch.tensor(1.0))
    with pytest.raises(hvd.HorovodInternalError):
        hvd.reducescatter(torch.ones(4), op=hvd.Adasum)


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average])
def test_reducescatter_gradient(op):
    tensor = torch.ones(2 * hvd.size(), 2, requires_grad=True)
    hvd.reducescatter(tensor, op=op).sum().backward()
    factor = hvd.size() if op == hvd.Sum else 1
    assert torch.equal(tensor.grad, torch.full((2 * hvd.size(), 2), float(factor)))


def test_grouped_reducescatter():
    tensors = [torch.ones(hvd.size(), 2), torch.ones(2 * hvd.size())]
    first, second = hvd.grouped_reducescatter(tensors, op=hvd.Sum, name="scattered")
    assert torch.equal(first, torch.full((1, 2), float(hvd.size())))
    assert torch.equal(second, torch.full((2,), float(hvd.size())))


def test_grouped_of_nothing_fails():
    for operation in (hvd.grouped_allreduce, hvd.grouped_allgather, hvd.grouped_reducescatter):
        with pytest.raises(ValueError):
            operation([])


# Tensors on devices.


def test_tensors_that_go_through_host_memory(monkeypatch):
    """Tensors of other devices do so; here all tensors count as such."""
    copies = []
    address = _tensors.address

    def on_host(tensor):
        copies.append(tensor.detach().clone())
        return copies[-1]

    def address_of_copies(tensor):
        return address(tensor) if any(tensor is copy for copy in copies) else None

    monkeypatch.setattr(_tensors, "on_host", on_host)
    monkeypatch.setattr(_tensors, "address", address_of_copies)
    monkeypatch.setattr(_tensors, "check", address_of_copies)
    size, tensor = hvd.size(), torch.full((3,), 2.0)
    assert hvd.allreduce(tensor, op=hvd.Sum).tolist() == [2.0 * size] * 3
    assert tensor.tolist() == [2.0] * 3
    hvd.allreduce_(tensor, op=hvd.Sum)
    assert tensor.tolist() == [2.0 * size] * 3
    pair = [torch.ones(2), torch.ones(3)]
    hvd.grouped_allreduce_(pair, op=hvd.Sum)
    assert pair[0].tolist() == [size] * 2 and pair[1].tolist() == [size] * 3
    mine = torch.full((2,), float(hvd.rank()))
    assert hvd.broadcast(mine, 0).tolist() == [0.0] * 2 and mine.tolist() == [hvd.rank()] * 2
    assert hvd.broadcast_(mine, 0) is mine and mine.tolist() == [0.0] * 2
    assert hvd.allgather(torch.ones(2)).tolist() == [1.0] * 2 * size
    assert hvd.alltoall(torch.ones(size)).tolist() == [1.0] * size
    assert hvd.reducescatter(torch.ones(size), op=hvd.Sum).tolist() == [float(size)]


def test_views_of_negated_memory_have_their_own_sign():
    """As a conjugate's imaginary part is."""
    size, rank = hvd.size(), hvd.rank()
    memory = torch.arange(1.0, size + 1)
    view = torch._neg_view(memory)
    expected = [-1.0 - i for i in range(size)]
    assert view.is_neg()
    assert hvd.allreduce(view).tolist() == expected
    assert [t.tolist() for t in hvd.grouped_allreduce([view, memory])] == [expected, memory.tolist()]
    assert hvd.allgather(view).tolist() == expected * size
    assert hvd.alltoall(view).tolist() == [expected[rank]] * size
    assert hvd.broadcast(view, 0).tolist() == expected
    assert hvd.reducescatter(view).tolist() == [expected[rank]]
    hvd.allreduce_(view, op=hvd.Sum)
    assert memory.tolist() == [(1.0 + i) * size for i in range(size)]
    memory += rank
    hvd.broadcast_(view, size - 1)
    assert memory.tolist() == [(1.0 + i) * size + size - 1 for i in range(size)]


# Join, objects, parameters.


def test_join_lets_others_continue():
    """Rank r has r + 1 batches; those that joined count as zeros."""
    for batch in range(hvd.rank() + 1):
        left = hvd.size() - batch
        total = hvd.allreduce(torch.ones(2), op=hvd.Sum)
        assert total.tolist() == [float(left)] * 2
    assert hvd.join() == hvd.size() - 1
    # Unnamed operations match again afterwards.
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
