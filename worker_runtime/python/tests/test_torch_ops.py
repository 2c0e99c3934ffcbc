"""Every collective: types, forms, gradients. Runs on any number of ranks."""

import gc

import pytest
import torch

import horovod.torch as hvd
from horovod.torch import _reductions, _tensors

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
NUMBERS = INTEGERS + FLOATS
ALL = NUMBERS + [torch.bool]


def ranks_sum(values):
    """Sum over all ranks of `values(rank)`."""
    return sum(values(rank) for rank in range(hvd.size()))


# Allreduce.


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 3, 4)])
def test_allreduce_sum(dtype, shape):
    result = hvd.allreduce(torch.full(shape, hvd.rank() + 1, dtype=dtype), op=hvd.Sum)
    assert result.dtype == dtype and result.shape == shape
    assert torch.equal(result, torch.full(shape, ranks_sum(lambda r: r + 1), dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_allreduce_average(dtype):
    result = hvd.allreduce(torch.full((7,), 2.0 * hvd.rank(), dtype=dtype))
    assert torch.equal(result, torch.full((7,), hvd.size() - 1.0, dtype=dtype))


@pytest.mark.several_ranks
def test_allreduce_average_of_integers_is_truncated():
    value = 6 if hvd.rank() == 0 else 5
    result = hvd.allreduce(torch.tensor([value, -value]), op=hvd.Average)
    assert result.tolist() == [5, -5]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_allreduce_min_max_product(dtype):
    tensor = torch.tensor([hvd.rank() + 1, 3], dtype=dtype)
    assert hvd.allreduce(tensor, op=hvd.Min).tolist() == [1, 3]
    assert hvd.allreduce(tensor, op=hvd.Max).tolist() == [hvd.size(), 3]
    product = hvd.allreduce(torch.full((2,), 2, dtype=dtype), op=hvd.Product)
    assert product.tolist() == [2 ** hvd.size()] * 2


def test_allreduce_bool():
    tensor = torch.tensor([hvd.rank() == 0, False, True])
    assert hvd.allreduce(tensor, op=hvd.Max).tolist() == [True, False, True]
    assert hvd.allreduce(tensor, op=hvd.Min).tolist() == [hvd.size() == 1, False, True]


@pytest.mark.parametrize("dtype", FLOATS)
def test_allreduce_scaled(dtype):
    tensor = torch.full((4,), 3.0, dtype=dtype)
    result = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
    assert torch.equal(result, torch.full((4,), 6.0 * hvd.size(), dtype=dtype))


def test_allreduce_in_place_returns_the_tensor():
    tensor = torch.full((3,), float(hvd.rank()))
    assert hvd.allreduce_(tensor, op=hvd.Sum) is tensor
    assert torch.equal(tensor, torch.full((3,), float(ranks_sum(lambda r: r))))


def test_allreduce_leaves_its_input():
    tensor = torch.full((3,), float(hvd.rank()))
    hvd.allreduce(tensor, op=hvd.Sum)
    assert torch.equal(tensor, torch.full((3,), float(hvd.rank())))


def test_allreduce_async_many_in_different_order():
    """Named operations match by name, whatever the order."""
    order = list(range(50)) if hvd.rank() % 2 == 0 else list(reversed(range(50)))
    handles = {
        i: hvd.allreduce_async(torch.full((i + 1,), float(i)), name="many.%d" % i, op=hvd.Sum)
        for i in order
    }
    for i in range(50):
        result = hvd.synchronize(handles[i])
        assert torch.equal(result, torch.full((i + 1,), float(i * hvd.size())))


def test_allreduce_async_keeps_tensors_alive():
    handles = [
        hvd.allreduce_async_(torch.full((1000,), 1.0), name="alive.%d" % i, op=hvd.Sum)
        for i in range(20)
    ]
    gc.collect()
    for handle in handles:
        assert torch.equal(hvd.synchronize(handle), torch.full((1000,), float(hvd.size())))


def test_allreduce_large():
    tensor = torch.arange(3_000_000, dtype=torch.float32)
    assert torch.equal(hvd.allreduce(tensor, op=hvd.Sum), tensor * hvd.size())


@pytest.mark.parametrize("compression", [hvd.Compression.none, hvd.Compression.fp16])
def test_allreduce_compression(compression):
    result = hvd.allreduce(torch.full((4,), 1.5), compression=compression)
    assert result.dtype == torch.float32 and torch.equal(result, torch.full((4,), 1.5))


def test_allreduce_adasum_of_equal_tensors_is_the_tensor():
    tensor = torch.tensor([1.0, -2.0, 3.0])
    assert torch.allclose(hvd.allreduce(tensor, op=hvd.Adasum), tensor)


@pytest.mark.several_ranks
def test_allreduce_adasum_of_orthogonal_tensors_is_the_sum():
    if hvd.size() != 2:
        pytest.skip("for two ranks")
    tensor = torch.zeros(2)
    tensor[hvd.rank()] = 2.0
    assert torch.allclose(hvd.allreduce(tensor, op=hvd.Adasum), torch.tensor([2.0, 2.0]))


def test_allreduce_average_argument():
    tensor = torch.ones(2)
    with pytest.warns(DeprecationWarning):
        assert torch.equal(hvd.allreduce(tensor, average=False), tensor * hvd.size())
    with pytest.warns(DeprecationWarning):
        assert torch.equal(hvd.allreduce(tensor, average=True), tensor)
    with pytest.raises(ValueError, match="The op parameter supersedes average"):
        hvd.allreduce(tensor, average=True, op=hvd.Sum)


@pytest.mark.parametrize("op,factor", [(hvd.Sum, "size"), (hvd.Average, 1)])
def test_allreduce_gradient(op, factor):
    tensor = torch.ones(3, 2, requires_grad=True)
    hvd.allreduce(tensor, op=op).sum().backward()
    assert torch.equal(
        tensor.grad, torch.full((3, 2), float(hvd.size() if factor == "size" else 1))
    )


def test_grouped_allreduce_of_mixed_types():
    tensors = [torch.full((i + 1,), i, dtype=dtype) for i, dtype in enumerate(NUMBERS)]
    results = hvd.grouped_allreduce(tensors, op=hvd.Sum, name="mixed")
    for tensor, result in zip(tensors, results):
        assert torch.equal(result, tensor * hvd.size())
    hvd.grouped_allreduce_(tensors, op=hvd.Sum, name="mixed")
    for tensor, result in zip(tensors, results):
        assert torch.equal(result, tensor)


def test_grouped_allreduce_gradient_and_compression():
    tensors = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
    results = hvd.grouped_allreduce(tensors, op=hvd.Sum, compression=hvd.Compression.fp16)
    (results[0].sum() + 2 * results[1].sum()).backward()
    assert torch.equal(tensors[0].grad, torch.full((2,), float(hvd.size())))
    assert torch.equal(tensors[1].grad, torch.full((3,), 2.0 * hvd.size()))


def test_grouped_of_nothing_fails():
    for operation in (hvd.grouped_allreduce, hvd.grouped_allgather, hvd.grouped_reducescatter):
        with pytest.raises(ValueError):
            operation([])


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average])
def test_sparse_allreduce(op):
    indices = torch.tensor([[0, hvd.rank() % 3]])
    tensor = torch.sparse_coo_tensor(indices, torch.ones(2, 2), (4, 2))
    result = hvd.sparse_allreduce_async(tensor, "sparse", op)().to_dense()
    expected = ranks_sum(
        lambda r: torch.sparse_coo_tensor([[0, r % 3]], torch.ones(2, 2), (4, 2)).to_dense()
    )
    assert torch.allclose(result, expected / (hvd.size() if op == hvd.Average else 1))


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
    with pytest.raises(ValueError, match="broadcast received invalid root rank"):
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


def test_requests_alike_but_for_one_thing_are_not_mixed_up(monkeypatch):
    """Also if there are more of them than are kept."""
    kinds = [
        (shape, dtype, op, prescale, postscale)
        for shape in [(), (4,), (2, 2)]
        for dtype in [torch.float32, torch.float64]
        for op in [hvd.Sum, hvd.Max]
        for prescale, postscale in [(1.0, 1.0), (2, 1), (1, 2.0)]
    ]
    for most in (1 << 10, 5):
        monkeypatch.setattr(_reductions, "_MOST_PREPARED", most)
        for shape, dtype, op, prescale, postscale in kinds * 2:
            factors = dict(prescale_factor=prescale, postscale_factor=postscale)
            want = torch.full(shape, prescale * postscale, dtype=dtype)
            want *= hvd.size() if op == hvd.Sum else 1
            ones = torch.ones(shape, dtype=dtype)
            reduced = hvd.allreduce(ones, name="one", op=op, **factors)
            assert torch.equal(reduced, want) and reduced.dtype == dtype
            pair = hvd.grouped_allreduce([ones, ones[None]], name="two", op=op, **factors)
            assert torch.equal(pair[0], want) and torch.equal(pair[1], want[None])
            assert torch.equal(ones, torch.ones_like(ones))


# Tensors on devices.


def test_tensors_that_go_through_host_memory(monkeypatch):
    """As those of any device do: here all tensors are taken for such."""
    monkeypatch.setattr(_tensors, "in_host_memory", lambda tensor: False)
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


# Join, objects, parameters.


def test_join_lets_others_go_on():
    """Rank r has r + 1 batches; those that joined count as zeros."""
    for batch in range(hvd.rank() + 1):
        left = hvd.size() - batch
        total = hvd.allreduce(torch.ones(2), op=hvd.Sum)
        assert total.tolist() == [float(left)] * 2
    assert hvd.join() == hvd.size() - 1
    # Unnamed operations match again afterwards.
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
