"""horovod.mxnet against numpy; every rank knows what all have."""

import inspect

import mxnet as mx
import numpy
import pytest

import horovod.mxnet as hvd
from horovod.mxnet import mpi_ops

DTYPES = ["uint8", "int8", "int32", "int64", "float16", "float32", "float64"]
BFLOAT16 = numpy.dtype([("bfloat16", numpy.uint16)])
REDUCTIONS = {
    "Sum": lambda all_: all_.sum(0),
    "Average": lambda all_: all_.sum(0) / len(all_),
    "Min": lambda all_: all_.min(0),
    "Max": lambda all_: all_.max(0),
    "Product": lambda all_: all_.prod(0),
}


def of_rank(rank, shape=(4, 3), dtype="float32"):
    return (numpy.arange(numpy.prod(shape)).reshape(shape) % 3 + rank + 1).astype(dtype)


def of_all(*args):
    return numpy.stack([of_rank(rank, *args) for rank in range(hvd.size())])


def mine(*args):
    values = of_rank(hvd.rank(), *args)
    return mx.nd.array(values, dtype=values.dtype)


def check(result, expected):
    assert isinstance(result, mx.nd.NDArray)
    assert numpy.dtype(result.dtype) == expected.dtype
    assert result.shape == expected.shape and numpy.array_equal(result.asnumpy(), expected)


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_allreduce(op, dtype):
    array = mine((4, 3), dtype)
    expected = REDUCTIONS[op](of_all((4, 3), dtype)).astype(dtype)
    check(hvd.allreduce(array, op=getattr(hvd, op)), expected)
    check(array, of_rank(hvd.rank(), (4, 3), dtype))
    assert hvd.allreduce_(array, op=getattr(hvd, op), priority=-3) is array
    check(array, expected)


def test_allreduce_of_bool_and_bfloat16():
    truth = mx.nd.array([hvd.rank() == 0, True, False], dtype="bool")
    check(hvd.allreduce(truth, op=hvd.Max), numpy.array([True, True, False]))
    total = hvd.allreduce(mine().astype(BFLOAT16), op=hvd.Sum)
    assert total.dtype == BFLOAT16
    check(total.astype("float32"), of_all().sum(0))


def test_allreduce_scaled():
    check(hvd.allreduce(mine(), op=hvd.Sum, prescale_factor=2.0, postscale_factor=4.0), of_all().sum(0) * 8)


@pytest.mark.filterwarnings("ignore:Parameter .average.")
def test_average_as_in_older_scripts():
    check(hvd.allreduce(mine()), of_all().sum(0) / hvd.size())
    check(hvd.allreduce(mine(), True), of_all().sum(0) / hvd.size())
    check(hvd.allreduce(mine(), False, "name", 0), of_all().sum(0))
    with pytest.raises(ValueError, match="op replaces average"):
        hvd.allreduce(mine(), average=True, op=hvd.Sum)


def test_grouped_allreduce():
    shapes = [((2,), "float32"), ((2, 2), "int64"), ((1,), "float64")]
    arrays = [mine(*shape) for shape in shapes]
    for name in ("group", "group", None):
        results = hvd.grouped_allreduce(arrays, name=name, op=hvd.Sum)
        for result, shape in zip(results, shapes):
            check(result, of_all(*shape).sum(0).astype(shape[1]))
    assert hvd.grouped_allreduce_(arrays, op=hvd.Sum) is arrays
    for array, result in zip(arrays, results):
        check(array, result.asnumpy())
    assert hvd.grouped_allreduce([]) == hvd.grouped_allreduce_([]) == []


def test_a_part_of_an_array_is_reduced_where_it_lies():
    array = mine()
    hvd.allreduce_(array[1:3], op=hvd.Sum)
    expected = of_rank(hvd.rank())
    expected[1:3] = of_all().sum(0)[1:3]
    check(array, expected)


def test_allgather():
    parts = [of_rank(rank, (rank + 1, 2)) for rank in range(hvd.size())]
    check(hvd.allgather(mine((hvd.rank() + 1, 2))), numpy.concatenate(parts))
    pair = hvd.grouped_allgather([mine((1, 2), "int32"), mine((hvd.rank() + 1, 2))])
    check(pair[0], numpy.concatenate(of_all((1, 2), "int32")))
    check(pair[1], numpy.concatenate(parts))


def test_broadcast():
    for root in range(hvd.size()):
        array = mine()
        check(hvd.broadcast(array, root), of_rank(root))
        check(array, of_rank(hvd.rank()))
        assert hvd.broadcast_(array, root, name="in place") is array
        check(array, of_rank(root))
    with pytest.raises(ValueError, match=r"root rank \d+ is not in the process set"):
        hvd.broadcast(mine(), hvd.size())


@pytest.mark.parametrize("kind", [list, mx.nd.array])
def test_alltoall(kind):
    rank, size = hvd.rank(), hvd.size()
    check(hvd.alltoall(mine((size, 2))), of_all((size, 2))[:, rank])
    splits = [rank + to for to in range(size)]  # rank 0 sends itself nothing
    given = splits if kind is list else mx.nd.array(splits, dtype="int32")
    rows, received = hvd.alltoall(mine((sum(splits) + 1,)), given)
    expected = []
    for sender in range(size):
        first = sum(sender + to for to in range(rank))
        expected.append(of_rank(sender, (first + sender + rank,))[first:])
    check(received, numpy.array([sender + rank for sender in range(size)], "int32"))
    assert rows.shape == (sum(sender + rank for sender in range(size)),)
    if rows.shape[0] > 0:
        check(rows, numpy.concatenate(expected))
    for wrong in (mx.nd.ones(size), mx.nd.ones((1, size), dtype="int32"), mx.nd.ones(size + 1, dtype="int32")):
        with pytest.raises(ValueError, match="splits"):
            hvd.alltoall(mine((size,)), wrong)


@pytest.mark.parametrize("op", ["Average", "Sum"])
def test_reducescatter(op):
    rank, size = hvd.rank(), hvd.size()
    rows = 2 * size + 1
    first = 2 * rank + (rank > 0)
    expected = REDUCTIONS[op](of_all((rows, 2)))[first : first + 2 + (rank == 0)]
    check(hvd.reducescatter(mine((rows, 2)), getattr(hvd, op)), expected)
    for result in hvd.grouped_reducescatter([mine((rows, 2))] * 2, getattr(hvd, op), prescale_factor=2.0):
        check(result, expected * 2)


def test_operations_wait_for_mxnets_engine():
    """The engine is asynchronous: results of earlier operations are reduced, and earlier readers of an
    array that is overwritten get the old values."""
    size, rank = 1200, hvd.rank()
    one = mx.nd.full((size, size), rank + 1)
    one.wait_to_read()
    product = mx.nd.dot(one, one)
    hvd.allreduce_(one, op=hvd.Sum)  # the product is under way
    twice = product * 2
    hvd.allreduce_(twice, op=hvd.Sum)
    later = one + 1
    ranks = numpy.arange(1, hvd.size() + 1)
    for array, value in (
        (product, (rank + 1.0) ** 2 * size),
        (twice, (ranks**2).sum() * 2.0 * size),
        (later, ranks.sum() + 1.0),
    ):
        check(array, numpy.full((size, size), value, "float32"))


def test_arrays_of_mxnets_numpy():
    with mx.util.np_shape(True), mx.util.np_array(True):
        array = mx.np.array(of_rank(hvd.rank()))
        for result in (hvd.allreduce(array, op=hvd.Sum), hvd.allreduce_(array, op=hvd.Sum)):
            assert type(result) is mx.np.ndarray
            check(result, of_all().sum(0))
        scalar = mx.np.array(float(hvd.rank() + 1))
        assert hvd.allreduce(scalar, op=hvd.Max).item() == hvd.size()
        gathered = hvd.allgather(mx.np.ones((hvd.rank(), 2)))
        assert type(gathered) is mx.np.ndarray
        assert gathered.shape == (sum(range(hvd.size())), 2)


def test_what_is_refused():
    for given, text in (
        (numpy.ones(2), "needs an MXNet NDArray, got <class 'numpy.ndarray'>"),
        (mx.nd.ones((2, 2)).tostype("row_sparse"), r"tostype\('default'\)"),
    ):
        for operation in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter):
            with pytest.raises(ValueError, match=text):
                operation(given)
        with pytest.raises(ValueError, match=text):
            hvd.grouped_allreduce([mx.nd.ones(2), given])
    with pytest.raises(TypeError, match="nonsense"):
        hvd.allreduce(mine(), nonsense=1)


@pytest.mark.several_ranks
def test_mismatch_is_reported():
    with pytest.raises(hvd.HorovodInternalError, match="Mismatched"):
        hvd.allreduce(mx.nd.ones(1 + hvd.rank()))
    check(hvd.allreduce(mx.nd.ones(1), op=hvd.Sum), numpy.full(1, hvd.size(), "float32"))


@pytest.mark.several_ranks
def test_process_set(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    last = hvd.add_process_set([hvd.size() - 1])
    if last.included():
        check(hvd.allreduce(mine(), process_set=last), of_rank(hvd.rank()))
        check(hvd.broadcast(mine(), hvd.rank(), process_set=last), of_rank(hvd.rank()))
    hvd.remove_process_set(last)


def test_objects():
    assert hvd.broadcast_object({"rank": hvd.rank()}, hvd.size() - 1) == {"rank": hvd.size() - 1}
    assert hvd.allgather_object(hvd.rank()) == list(range(hvd.size()))


@pytest.mark.parametrize(
    "function, arguments",
    [
        ("allgather", ["tensor", "name", "priority", "process_set"]),
        ("grouped_allgather", ["tensors", "name", "priority", "process_set"]),
        ("broadcast", ["tensor", "root_rank", "name", "priority", "process_set"]),
        ("broadcast_", ["tensor", "root_rank", "name", "priority", "process_set"]),
        ("alltoall", ["tensor", "splits", "name", "priority", "process_set"]),
        ("broadcast_parameters", ["params", "root_rank", "prefix"]),
    ],
)
def test_signatures(function, arguments):
    assert list(inspect.signature(getattr(hvd, function)).parameters) == arguments


def test_mpi_ops_has_the_names_of_the_package():
    names = ["init", "rank", "Sum", "nccl_built", "ProcessSet", "add_process_set", "remove_process_set", "allreduce"]
    assert all(getattr(mpi_ops, name) is getattr(hvd, name) for name in names)
    assert mpi_ops.handle_average_backwards_compatibility(None, None) == hvd.Average


def test_arguments_by_position():
    """In Horovod's order."""
    everyone = hvd.global_process_set
    expected = of_all().sum(0) * 8
    check(hvd.allreduce(mine(), None, "a", 1, 2.0, 4.0, everyone, hvd.Sum), expected)
    check(hvd.allreduce_(mine(), None, "a", 1, 2.0, 4.0, everyone, hvd.Sum), expected)
    for result in hvd.grouped_allreduce([mine()], None, "a", 1, 2.0, 4.0, everyone, hvd.Sum):
        check(result, expected)
    rows = hvd.size()
    part = of_all((rows,)).sum(0)[hvd.rank() : hvd.rank() + 1] * 8
    check(hvd.reducescatter(mine((rows,)), hvd.Sum, "a", 1, everyone, 2.0, 4.0), part)
    check(hvd.grouped_reducescatter([mine((rows,))], hvd.Sum, "a", 1, everyone, 2.0, 4.0)[0], part)


def test_fp16_compression():
    for dtype in DTYPES:
        array = mine((2, 2), dtype)
        compressed, context = hvd.Compression.fp16.compress(array)
        assert (compressed.dtype is numpy.float16) == dtype.startswith("float")
        check(hvd.Compression.fp16.decompress(compressed, context), of_rank(hvd.rank(), (2, 2), dtype))
