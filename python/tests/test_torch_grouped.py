"""Grouped forms of the collectives: one operation, all or nothing. Runs on any number of ranks."""

import pytest
import torch

import horovod.torch as hvd
from horovod.common import ops
from horovod.common.exceptions import HorovodRequestError
from tensors_of_ranks import ALL


def pair(dtype=torch.float32):
    """Two tensors whose values are the rank."""
    rank = hvd.rank()
    return [torch.full((2, 3), rank, dtype=dtype), torch.full((4,), rank, dtype=torch.int64)]


@pytest.mark.parametrize("dtype", ALL)
def test_broadcast(dtype):
    root = hvd.size() - 1
    tensors = pair(dtype)
    results = hvd.grouped_broadcast(tensors, root)
    assert isinstance(results, list)
    for result, tensor in zip(results, tensors):
        assert torch.equal(result, torch.full_like(tensor, root))
        assert torch.equal(tensor, torch.full_like(tensor, hvd.rank()))


def test_broadcast_in_place_and_asynchronous():
    root = hvd.size() - 1
    tensors = pair()
    results = hvd.grouped_broadcast_(tensors, root, name="in place")
    assert all(result is tensor for result, tensor in zip(results, tensors))
    assert all((tensor == root).all() for tensor in tensors)
    handle = hvd.grouped_broadcast_async(pair(), 0, name="b")
    in_place = pair()
    other = hvd.grouped_broadcast_async_(in_place, 0, name="c")
    assert isinstance(handle, int) and hvd.poll(handle) in (True, False)
    assert all((result == 0).all() for result in hvd.synchronize(handle))
    assert hvd.synchronize(other)[0] is in_place[0] and (in_place[1] == 0).all()


def test_tuples_and_lists_are_returned_as_in_horovod():
    """As in Horovod, which has no groups of broadcast and alltoall."""
    asynchronous = [
        hvd.grouped_allreduce_async(pair()),
        hvd.grouped_allreduce_async_(pair()),
        hvd.grouped_allgather_async(pair()),
        hvd.grouped_reducescatter_async([torch.ones(3, 2), torch.ones(4)]),
        hvd.grouped_broadcast_async(pair(), 0),
        hvd.grouped_alltoall_async([torch.ones(hvd.size())]),
    ]
    assert {type(hvd.synchronize(handle)) for handle in asynchronous} == {tuple}
    for grad in (False, True):
        ones = [torch.ones(2, requires_grad=grad), torch.ones(3, requires_grad=grad)]
        assert type(hvd.grouped_allreduce(ones)) is type(hvd.grouped_reducescatter(ones)) is list
        assert type(hvd.grouped_broadcast(ones, 0)) is list
        assert type(hvd.grouped_allgather(ones)) is tuple
    assert type(hvd.grouped_allreduce_(pair())) is tuple


def test_broadcast_gradient():
    tensors = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
    first, second = hvd.grouped_broadcast(tensors, 0)
    (first.sum() + 2 * second.sum()).backward()
    mine = 1.0 if hvd.rank() == 0 else 0.0
    assert tensors[0].grad.tolist() == [mine] * 2
    assert tensors[1].grad.tolist() == [2 * mine] * 3


@pytest.mark.parametrize("dtype", ALL)
def test_alltoall(dtype):
    size = hvd.size()
    tensors = [torch.full((size, 2), hvd.rank() % 2, dtype=dtype), torch.arange(2 * size)]
    first, second = hvd.grouped_alltoall(tensors)
    wanted = torch.tensor([r % 2 for r in range(size)], dtype=dtype)
    assert first[:, 1].tolist() == wanted.tolist()
    assert second.tolist() == [2 * hvd.rank(), 2 * hvd.rank() + 1] * size


def test_alltoall_with_splits():
    size, rank = hvd.size(), hvd.rank()
    tensors = [torch.full((size * rank,), rank), torch.full((size, 2), float(rank))]
    splits = [torch.full((size,), rank, dtype=torch.int32), None]
    (first, rows), (second, one_each) = hvd.grouped_alltoall(tensors, splits, name="exchanged")
    assert first.tolist() == [r for r in range(size) for _ in range(r)]
    assert rows.tolist() == list(range(size)) and rows.dtype == torch.int32
    assert second[:, 0].tolist() == list(range(size)) and one_each.tolist() == [1] * size
    pairs = hvd.synchronize(hvd.grouped_alltoall_async(tensors, splits, name="exchanged"))
    assert torch.equal(pairs[0][0], first) and torch.equal(pairs[1][1], one_each)


def test_alltoall_gradient():
    size = hvd.size()
    tensors = [torch.ones(size + 1, 2, requires_grad=True), torch.ones(size, requires_grad=True)]
    pairs = hvd.grouped_alltoall(tensors, [[1] * size, None])
    ((pairs[0][0].sum() + 2 * pairs[1][0].sum()) * (hvd.rank() + 1)).backward()
    assert tensors[0].grad[:, 0].tolist() == [r + 1.0 for r in range(size)] + [0.0]
    assert tensors[1].grad.tolist() == [2 * (r + 1.0) for r in range(size)]


def test_bad_arguments_fail_at_once():
    size = hvd.size()
    for call in (
        lambda: hvd.grouped_broadcast([], 0),
        lambda: hvd.grouped_alltoall([]),
        lambda: hvd.grouped_broadcast([torch.ones(2)], size),
        lambda: hvd.grouped_alltoall([torch.ones(size)] * 2, [None]),
        lambda: hvd.grouped_alltoall([torch.ones(size)], [[1] * (size + 1)]),
        # Any tensor of a group, not only the first.
        lambda: hvd.grouped_allreduce([torch.ones(2), torch.ones(2, 3).t()]),
        lambda: hvd.grouped_allgather([torch.ones(2), torch.ones(2).to_sparse()]),
        lambda: hvd.grouped_broadcast([torch.ones(2), torch.ones(2, 3).t()], 0),
        lambda: hvd.grouped_reducescatter([torch.ones(2), torch.tensor(1.0)]),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(IndexError):
        hvd.grouped_allgather([torch.ones(2), torch.tensor(1.0)])


FORMS = {
    "allreduce": lambda tensors: hvd.grouped_allreduce(tensors, op=hvd.Sum, name="g"),
    "allgather": lambda tensors: hvd.grouped_allgather(tensors, name="g"),
    "broadcast": lambda tensors: hvd.grouped_broadcast(tensors, 0, name="g"),
    "alltoall": lambda tensors: hvd.grouped_alltoall(tensors, name="g"),
    "reducescatter": lambda tensors: hvd.grouped_reducescatter(tensors, op=hvd.Sum, name="g"),
}


@pytest.mark.several_ranks
@pytest.mark.parametrize("kind", sorted(FORMS))
def test_a_mismatch_in_one_tensor_fails_the_whole_group(kind):
    size = hvd.size()
    good = torch.ones(size, 2)
    bad = torch.ones(size, 2, dtype=torch.float64 if hvd.rank() == 0 else torch.float32)
    with pytest.raises(HorovodRequestError, match="Mismatched"):
        FORMS[kind]([good, bad])
    results = FORMS[kind]([good, good.double()])  # the same names, none of them taken
    assert len(results) == 2 and results[1].dtype == torch.float64


@pytest.mark.several_ranks
@pytest.mark.parametrize("kind", sorted(FORMS))
def test_a_name_that_is_taken_leaves_nothing_of_the_group(kind, monkeypatch):
    # Without the kind before it, else no other operation could have one of a group's names.
    monkeypatch.setattr(ops.naming, "__enter__", lambda naming: naming._name)
    tensors = [torch.ones(hvd.size(), 2), torch.ones(hvd.size(), 2)]
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(1), name="g_2of2", op=hvd.Sum)
        with pytest.raises(ValueError, match="is being processed already"):
            FORMS[kind](tensors)
    hvd.barrier()
    if hvd.rank() != 0:
        handle = hvd.allreduce_async(torch.ones(1), name="g_2of2", op=hvd.Sum)
    assert hvd.synchronize(handle).item() == hvd.size()
    assert len(FORMS[kind](tensors)) == 2


@pytest.mark.several_ranks
def test_on_a_process_set(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    last = hvd.size() - 1
    some = hvd.add_process_set([0, last] if last > 1 else [last])
    if some.included():
        tensors = pair()
        assert (hvd.grouped_broadcast(tensors, last, process_set=some)[0] == last).all()
        first, second = hvd.grouped_alltoall([torch.arange(some.size())] * 2, process_set=some)
        assert first.tolist() == second.tolist() == [some.rank()] * some.size()
    assert hvd.remove_process_set(some)
