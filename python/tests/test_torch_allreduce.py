"""Allreduce: types, forms, gradients. Runs on any number of ranks."""

import gc
import warnings

import pytest
import torch

import horovod.torch as hvd
from horovod.common import prepared_collective
from tensors_of_ranks import FLOATS, NUMBERS, ranks_sum


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


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_average_of_integers_whose_sum_exceeds_the_type(dtype, factor):
    most, least = torch.iinfo(dtype).max, torch.iinfo(dtype).min
    tensor = torch.tensor([most, least, most - hvd.rank()], dtype=dtype).repeat(hvd.size())
    wanted = torch.tensor([most, least, int(most - (hvd.size() - 1) / 2)], dtype=dtype)
    scales = dict(prescale_factor=factor, postscale_factor=1 / factor)
    for result in (
        hvd.allreduce(tensor, **scales),
        *hvd.grouped_allreduce([tensor, tensor[:3]], **scales),
        hvd.allreduce_(tensor.clone(), **scales),
    ):
        assert torch.equal(result, wanted.repeat(len(result) // 3))
    assert torch.equal(hvd.reducescatter(tensor, **scales), wanted)
    assert hvd.allreduce(tensor[:0], **scales).tolist() == []


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
    handles = {i: hvd.allreduce_async(torch.full((i + 1,), float(i)), name=f"many.{i}", op=hvd.Sum) for i in order}
    for i in range(50):
        result = hvd.synchronize(handles[i])
        assert torch.equal(result, torch.full((i + 1,), float(i * hvd.size())))


def test_allreduce_async_keeps_tensors_alive():
    handles = [hvd.allreduce_async_(torch.full((1000,), 1.0), name=f"alive.{i}", op=hvd.Sum) for i in range(20)]
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
    with pytest.raises(ValueError, match="op and average are both given"):
        hvd.allreduce(tensor, average=True, op=hvd.Sum)


@pytest.mark.parametrize("op,factor", [(hvd.Sum, "size"), (hvd.Average, 1)])
def test_allreduce_gradient(op, factor):
    tensor = torch.ones(3, 2, requires_grad=True)
    hvd.allreduce(tensor, op=op).sum().backward()
    assert torch.equal(tensor.grad, torch.full((3, 2), float(hvd.size() if factor == "size" else 1)))


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


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average])
def test_sparse_allreduce(op):
    indices = torch.tensor([[0, hvd.rank() % 3]])
    tensor = torch.sparse_coo_tensor(indices, torch.ones(2, 2), (4, 2))
    result = hvd.sparse_allreduce_async(tensor, "sparse", op)().to_dense()
    expected = ranks_sum(lambda r: torch.sparse_coo_tensor([[0, r % 3]], torch.ones(2, 2), (4, 2)).to_dense())
    assert torch.allclose(result, expected / (hvd.size() if op == hvd.Average else 1))


def test_sparse_allreduce_bad_arguments():
    sparse = torch.ones(3).to_sparse()
    for op in (hvd.Min, hvd.Adasum):
        with pytest.raises(ValueError, match=r"hvd\.Average and hvd\.Sum only"):
            hvd.sparse_allreduce_async(sparse, "sparse", op)
    with pytest.raises(ValueError, match="needs a sparse COO tensor"):
        hvd.sparse_allreduce_async(torch.ones(3), "sparse", hvd.Sum)


def test_sparse_allreduce_does_not_warn():
    embedding = torch.nn.Embedding(4, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hvd.sparse_allreduce_async(embedding.weight.grad, "quiet", hvd.Sum)()
    finally:
        torch.set_warn_always(False)


@pytest.mark.several_ranks
def test_sparse_allreduce_refuses_indices_out_of_range():
    size = 4 + hvd.rank()
    tensor = torch.sparse_coo_tensor([[size - 1]], torch.ones(1), (size,))
    wait = hvd.sparse_allreduce_async(tensor, "ranges", hvd.Sum)
    if hvd.rank() == hvd.size() - 1:
        assert wait().to_dense().tolist() == [0.0] * 3 + [1.0] * hvd.size()
    else:
        with pytest.raises(RuntimeError, match="size"):
            wait()


def test_requests_alike_but_for_one_thing_are_not_mixed_up(monkeypatch):
    """This holds even if there are more requests than the cache has entries."""
    kinds = [
        (shape, dtype, op, prescale, postscale)
        for shape in [(), (4,), (2, 2)]
        for dtype in [torch.float32, torch.float64]
        for op in [hvd.Sum, hvd.Max]
        for prescale, postscale in [(1.0, 1.0), (2, 1), (1, 2.0)]
    ]
    for most in (1 << 10, 5):
        monkeypatch.setattr(prepared_collective, "_MOST_PREPARED", most)
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
