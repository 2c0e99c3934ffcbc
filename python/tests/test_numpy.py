"""horovod.numpy against numpy itself; every rank knows what all have."""

import array

import numpy
import pytest
import torch

import horovod.numpy as hvd

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
REDUCTIONS = {
    "Sum": lambda all_: all_.sum(0),
    "Average": lambda all_: all_.sum(0) / len(all_),
    "Min": lambda all_: all_.min(0),
    "Max": lambda all_: all_.max(0),
    "Product": lambda all_: all_.prod(0),
}


class Own(numpy.ndarray):
    """A user's kind of array."""


def of_rank(rank, shape=(4, 3), dtype="float64"):
    return (numpy.arange(numpy.prod(shape)).reshape(shape) % 3 + rank + 1).astype(dtype)


def of_all(*args):
    return numpy.stack([of_rank(rank, *args) for rank in range(hvd.size())])


def check(result, expected):
    assert type(result) is numpy.ndarray
    assert result.dtype == expected.dtype and numpy.array_equal(result, expected)


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_allreduce(op, dtype):
    mine = of_rank(hvd.rank(), (4, 3), dtype)
    before = mine.copy()
    expected = REDUCTIONS[op](of_all((4, 3), dtype)).astype(dtype)
    check(hvd.allreduce(mine, op=getattr(hvd, op)), expected)
    check(mine, before)


def test_allreduce_of_any_shape():
    for shape in [(), (0, 2), (1,), (2, 1, 3)]:
        check(hvd.allreduce(of_rank(hvd.rank(), shape), op=hvd.Sum), of_all(shape).sum(0))
    truth = numpy.array([hvd.rank() == 0, True, False])
    check(hvd.allreduce(truth, op=hvd.Max), numpy.array([True, True, False]))


def test_allreduce_scaled():
    expected = of_all().sum(0) * 8
    check(hvd.allreduce(of_rank(hvd.rank()), None, hvd.Sum, 2.0, 4.0), expected)


def test_grouped_allreduce():
    shapes = [((2,), "float32"), ((2, 2), "int64"), ((), "float64")]
    mine = [of_rank(hvd.rank(), *shape) for shape in shapes]
    for name in ("group", "group", None):
        results = hvd.grouped_allreduce(mine, name=name, op=hvd.Sum)
        for result, shape in zip(results, shapes):
            check(result, of_all(*shape).sum(0).astype(shape[1]))
    with pytest.raises(ValueError, match="at least one"):
        hvd.grouped_allreduce([])


def test_allgather():
    parts = [of_rank(rank, (rank, 2)) for rank in range(hvd.size())]
    check(hvd.allgather(parts[hvd.rank()]), numpy.concatenate(parts))
    with pytest.raises(IndexError):
        hvd.allgather(numpy.float64(1))


def test_broadcast():
    for root in range(hvd.size()):
        mine = of_rank(hvd.rank())
        check(hvd.broadcast(mine, root), of_rank(root))
        check(mine, of_rank(hvd.rank()))
    with pytest.raises(
        ValueError, match=rf"root rank {hvd.size()} is not in the process set, whose ranks are 0(.* {hvd.size() - 1})?$"
    ):
        hvd.broadcast(of_rank(0), hvd.size())


def test_alltoall():
    rank, size = hvd.rank(), hvd.size()
    check(hvd.alltoall(of_rank(rank, (size, 2))), of_all((size, 2))[:, rank])
    splits = [rank + to for to in range(size)]
    rows, received = hvd.alltoall(of_rank(rank, (sum(splits) + 1,)), splits)
    expected = []
    for sender in range(size):
        first = sum(sender + to for to in range(rank))
        expected.append(of_rank(sender, (first + sender + rank,))[first:])
    check(rows, numpy.concatenate(expected))
    check(received, numpy.array([sender + rank for sender in range(size)], "int32"))
    with pytest.raises(ValueError, match="splits"):
        hvd.alltoall(numpy.ones(size), [1] * (size + 1))


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reducescatter(op):
    rank, size = hvd.rank(), hvd.size()
    rows = 2 * size + 1
    reduced = REDUCTIONS[op](of_all((rows, 2)))
    first = 2 * rank + (rank > 0)
    expected = reduced[first : first + 2 + (rank == 0)]
    check(hvd.reducescatter(of_rank(rank, (rows, 2)), op=getattr(hvd, op)), expected)


def test_async():
    rank = hvd.rank()
    mine = of_rank(rank, (hvd.size(),))
    handles = [
        hvd.allreduce_async(mine, "a", hvd.Sum),
        hvd.grouped_allreduce_async([mine], "b", hvd.Sum),
        hvd.allgather_async(mine, "c"),
        hvd.broadcast_async(mine, 0, "d"),
        hvd.alltoall_async(mine, name="e"),
        hvd.reducescatter_async(mine, "f", hvd.Sum),
    ]
    summed, grouped, gathered, sent, exchanged, part = map(hvd.synchronize, handles)
    everything = of_all((hvd.size(),))
    check(summed, everything.sum(0))
    check(grouped[0], summed)
    check(gathered, everything.reshape(-1))
    check(sent, everything[0])
    check(exchanged[0], everything[:, rank])
    check(part, everything.sum(0)[rank : rank + 1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_arrays(dtype):
    size, rank = hvd.size(), hvd.rank()
    every = [(numpy.arange(2 * size).reshape(size, 2) * (1 - 2j) * (one + 1)).astype(dtype) for one in range(size)]
    own, rows = every[rank], slice(rank, rank + 1)
    check(hvd.allreduce(own, op=hvd.Sum), sum(every))
    check(hvd.grouped_allreduce([own[0, 1], own], op=hvd.Sum)[1], sum(every))
    check(hvd.allreduce(own[0, 1], op=hvd.Sum), sum(every)[0, 1])
    check(hvd.reducescatter(own, op=hvd.Sum), sum(every)[rows])
    check(hvd.allgather(own[: rank + 1]), numpy.concatenate([each[: one + 1] for one, each in enumerate(every)]))
    check(hvd.broadcast(own, size - 1), every[-1])
    check(hvd.alltoall(own), numpy.concatenate([each[rows] for each in every]))
    for op in (hvd.Min, hvd.Max, hvd.Product, hvd.Adasum):
        with pytest.raises(
            ValueError, match=rf"^{dtype} can be reduced by hvd\.Sum and hvd\.Average, not by hvd\.\w+$"
        ):
            hvd.allreduce(own, op=op)


def test_what_shares_memory():
    size = hvd.size()
    expected = numpy.array([1.0, 2.0]) * size
    for given in (
        array.array("d", [1.0, 2.0]),
        memoryview(array.array("d", [1.0, 2.0])),
        torch.tensor([1.0, 2.0], dtype=torch.float64),  # by DLPack
        numpy.array([1.0, 2.0]).view(Own),
        [1.0, 2.0],
    ):
        check(hvd.allreduce(given, op=hvd.Sum).reshape(-1), expected)
    for given in (b"ab", bytearray(b"ab")):
        assert hvd.allgather(given).tobytes() == b"ab" * size


def test_what_is_refused():
    for given in (numpy.array(["a"]), numpy.array([None]), numpy.ones(2, ">f8"), numpy.ones(1, ">c8")):
        with pytest.raises(ValueError, match="not supported"):
            hvd.allreduce(given)
    with pytest.raises(ValueError, match="contiguous"):
        hvd.allreduce(numpy.ones((2, 2)).T[:1])


def test_what_would_lose_something_is_refused():
    tensor = torch.ones(2)
    for given, text in (
        (numpy.ma.masked_array([1.0, 2.0], [True, False]), "mask would be lost"),
        (tensor.to(torch.bfloat16), "Tensor is not supported by numpy"),
        (tensor.clone().requires_grad_(), "Tensor is not supported by numpy"),
        (torch.eye(2).to_sparse(), "Tensor is not supported by numpy"),
        ([[1.0], [2.0, 3.0]], "inhomogeneous"),
    ):
        for operation in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter):
            with pytest.raises(ValueError, match=text):
                operation(given)
        with pytest.raises(ValueError, match=text):
            hvd.grouped_allreduce([tensor, given])
        with pytest.raises(ValueError, match=text):
            hvd.broadcast(given, 0)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_splits_are_integers_of_any_size(dtype):
    rows, received = hvd.alltoall(numpy.arange(hvd.size()), numpy.ones(hvd.size(), dtype))
    check(rows, numpy.full(hvd.size(), hvd.rank()))
    check(received, numpy.ones(hvd.size(), "int32"))


def test_bad_splits_are_refused():
    size = hvd.size()
    for splits in (numpy.ones(size), numpy.ones((1, size), "int64"), numpy.full(size, 2**32 + 1), numpy.full(size, -1)):
        with pytest.raises(ValueError, match="splits"):
            hvd.alltoall(numpy.ones(size), splits)


@pytest.mark.several_ranks
def test_mismatch_is_reported():
    with pytest.raises(hvd.HorovodRequestError, match="Mismatched"):
        hvd.allreduce(numpy.ones(1 + hvd.rank()))
    check(hvd.allreduce(numpy.ones(1), op=hvd.Sum), numpy.ones(1) * hvd.size())


def test_objects_and_barrier():
    assert hvd.broadcast_object({"rank": hvd.rank()}, hvd.size() - 1) == {"rank": hvd.size() - 1}
    assert hvd.allgather_object(hvd.rank()) == list(range(hvd.size()))
    hvd.barrier()


@pytest.mark.several_ranks
def test_process_set(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    last = hvd.add_process_set([hvd.size() - 1])
    if last.included():
        check(hvd.allreduce(of_rank(7), process_set=last), of_rank(7))
        assert hvd.broadcast_object(1, hvd.rank(), process_set=last) == 1
        hvd.barrier(last)
    hvd.remove_process_set(last)


def test_join():
    for _ in range(hvd.rank() + 1):
        hvd.allreduce(numpy.ones(1), op=hvd.Sum)
    assert hvd.join() == hvd.size() - 1


def test_state_is_restored_in_place(tmp_path):
    weights, grid = numpy.arange(3.0), numpy.ones((2, 2), order="F")
    state = hvd.elastic.State(str(tmp_path), weights=weights, grid=grid, step=1, notes=["a"])
    weights += 1
    grid *= 5
    state.step, state.notes = 2, ["b"]
    state.restore()
    check(weights, numpy.arange(3.0))
    check(grid, numpy.ones((2, 2)))
    assert state.weights is weights and (state.step, state.notes) == (1, ["a"])
    weights[:] = 7
    state.save()
    weights[:] = 8
    state.restore()
    check(weights, numpy.full(3, 7.0))


def test_assigned_arrays_are_rolled_back():
    state = hvd.elastic.State(weights=numpy.zeros(3), step=0)
    state.weights += 1
    state.weights = state.weights + 1
    state.save()
    state.weights *= 5
    state.weights = other = state.weights + 1
    state.restore()
    assert state.weights is other
    check(other, numpy.full(3, 2.0))
    for wrong in (numpy.zeros(4), numpy.zeros(3, "int64"), 1.0):
        with pytest.raises(ValueError, match="has to stay an array of float64, shape \\(3,\\)"):
            state.weights = wrong
    assert state.weights is other


def test_arrays_that_can_not_be_overwritten_in_place_are_no_state():
    for given in (
        numpy.ma.masked_array([1.0], [True]),
        numpy.ones(2).view(Own),
        numpy.ones(2, ">f8"),
        numpy.array(["a"]),
        numpy.array([None]),
        numpy.zeros(2, [("a", "f4")]),
        numpy.frombuffer(b"ab", numpy.uint8),
    ):
        with pytest.raises(ValueError, match=r"^State\.weights: .* can't be overwritten in place"):
            hvd.elastic.State(fine=numpy.zeros(1), weights=given)


def test_read_only_array_is_named():
    fixed = numpy.broadcast_to(numpy.float32(1), 3)
    why = "ndarray of float32 can't be overwritten in place, because it is read-only: give the state a copy"
    with pytest.raises(ValueError) as caught:
        hvd.elastic.State(a=fixed)
    assert str(caught.value) == f"State.a: {why}"
    # Within another value it is replaced instead.
    state = hvd.elastic.State(a=[fixed])
    state.restore()
    check(state.a[0], numpy.ones(3, "float32"))


def test_state_is_rank_0s_after_sync():
    rank = hvd.rank()
    state = hvd.elastic.State(weights=of_rank(rank), fixed=of_rank(rank)[:, ::2], names=[rank], step=rank)
    state.sync()
    check(state.weights, of_rank(0))
    check(state.fixed, of_rank(0)[:, ::2])
    assert state.names == [0] and state.step == 0


def test_arrays_within_values_are_overwritten_in_place():
    rank = hvd.rank()
    means, random = {"w": of_rank(rank), "steps": rank}, numpy.random.default_rng(rank)
    kept = means["w"]
    state = hvd.elastic.State(means=means, tools=[random])
    state.sync()
    assert means["w"] is kept and means["steps"] == 0
    check(kept, of_rank(0))
    state.commit()
    drawn = random.random()
    kept += 5
    state.restore()
    check(kept, of_rank(0))
    assert state.means is means and random.random() == drawn


def test_checkpoint_can_be_read(tmp_path):
    state = hvd.elastic.State(str(tmp_path / str(hvd.rank())), w=of_rank(0), parts=[of_rank(1)], step=3)
    state.commit()
    if hvd.rank() == 0:
        state._checkpoints.wait()
        found = hvd.elastic.load_checkpoint(tmp_path / "0")
        check(found["w"], of_rank(0))
        check(found["parts"][0], of_rank(1))
        assert found["step"] == 3
