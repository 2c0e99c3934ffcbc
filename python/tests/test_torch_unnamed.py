"""Operations without a name stay matched after an error that one rank, or all, have caught. Runs on
any number of ranks."""

import pytest
import torch

import horovod.torch as hvd

# What fails at once, on the rank that asks for it alone: nothing of it reaches the others.
REFUSED = {
    "allreduce, type": lambda: hvd.allreduce(torch.ones(2).to_sparse()),
    "allreduce, strides": lambda: hvd.allreduce(torch.ones(2, 3).t()),
    "allreduce, reduction": lambda: hvd.allreduce(torch.ones(2), op=17),
    "allreduce, Adasum of integers": lambda: hvd.allreduce(torch.tensor([1]), op=hvd.Adasum),
    "allreduce, factor": lambda: hvd.allreduce(torch.ones(2), prescale_factor=float("nan")),
    "allreduce_, strides": lambda: hvd.allreduce_(torch.ones(2, 3).t()),
    "grouped_allreduce, second": lambda: hvd.grouped_allreduce([torch.ones(2), torch.ones(2, 3).t()]),
    "grouped_allreduce, Adasum of integers": lambda: hvd.grouped_allreduce(
        [torch.ones(2), torch.tensor([1])], op=hvd.Adasum
    ),
    "allgather, strides": lambda: hvd.allgather(torch.ones(2, 3).t()),
    "allgather, scalar": lambda: hvd.allgather(torch.tensor(1.0)),
    "grouped_allgather, scalar": lambda: hvd.grouped_allgather([torch.tensor(1.0)]),
    "broadcast, root": lambda: hvd.broadcast(torch.ones(2), 99),
    "broadcast, strides": lambda: hvd.broadcast(torch.ones(2, 3).t(), 0),
    "grouped_broadcast, root": lambda: hvd.grouped_broadcast([torch.ones(2)], 99),
    "grouped_broadcast, second": lambda: hvd.grouped_broadcast([torch.ones(2), torch.ones(2, 3).t()], 0),
    "alltoall, splits": lambda: hvd.alltoall(torch.ones(2), [99] * hvd.size()),
    "grouped_alltoall, splits": lambda: hvd.grouped_alltoall([torch.ones(2)], [[99]]),
    "reducescatter, scalar": lambda: hvd.reducescatter(torch.tensor(1.0)),
    "reducescatter, Adasum": lambda: hvd.reducescatter(torch.ones(2), op=hvd.Adasum),
    "reducescatter, factor": lambda: hvd.reducescatter(torch.ones(2), prescale_factor=float("nan")),
    "grouped_reducescatter, scalar": lambda: hvd.grouped_reducescatter([torch.ones(2), torch.tensor(1.0)]),
    "sparse_allreduce, dense": lambda: hvd.sparse_allreduce_async(torch.ones(2), None, hvd.Sum),
    "sparse_allreduce, reduction": lambda: hvd.sparse_allreduce_async(torch.eye(2).to_sparse(), None, hvd.Max),
}


def assert_matched():
    """One operation of each kind without a name, on all ranks."""
    size = hvd.size()
    ones = torch.ones(size, 2)
    assert hvd.allreduce(ones, op=hvd.Sum)[0, 0] == size
    assert hvd.grouped_allreduce([ones], op=hvd.Sum)[0][0, 0] == size
    assert hvd.allgather(ones).shape == (size * size, 2)
    assert hvd.grouped_allgather([ones])[0].shape == (size * size, 2)
    assert hvd.broadcast(ones * hvd.rank(), 0).sum() == 0
    assert hvd.grouped_broadcast([ones * hvd.rank()], 0)[0].sum() == 0
    assert hvd.alltoall(ones).shape == (size, 2)
    assert hvd.grouped_alltoall([ones])[0].shape == (size, 2)
    assert hvd.reducescatter(ones, op=hvd.Sum).tolist() == [[size, size]]
    assert hvd.grouped_reducescatter([ones], op=hvd.Sum)[0].tolist() == [[size, size]]
    sparse = hvd.sparse_allreduce_async(ones.to_sparse(), None, hvd.Sum)()
    assert sparse.to_dense()[0, 0] == size


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_after_an_error_on_one_rank(what):
    if hvd.rank() == hvd.size() - 1:
        with pytest.raises((ValueError, IndexError, hvd.HorovodInternalError)):
            REFUSED[what]()
    assert_matched()


def test_after_an_error_on_one_rank_of_a_process_set(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    if hvd.size() == 1:
        pytest.skip("needs several ranks")
    last = hvd.size() - 1
    some = hvd.add_process_set([last - 1, last] if last > 1 else [last])
    if hvd.rank() == last:
        with pytest.raises(ValueError):
            hvd.allreduce(torch.tensor([1]), op=hvd.Adasum, process_set=some)
    if some.included():
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=some) == some.size()
    assert hvd.remove_process_set(some)
    assert_matched()


@pytest.mark.several_ranks
def test_after_ranks_have_asked_for_different_operations():
    ones = torch.ones(hvd.size())
    with pytest.raises(hvd.HorovodInternalError):
        if hvd.rank() == 0:
            hvd.allreduce(ones)
        else:
            hvd.allgather(ones)
    assert_matched()


@pytest.mark.several_ranks
def test_after_a_mismatch():
    with pytest.raises(hvd.HorovodInternalError, match="Mismatched"):
        hvd.allreduce(torch.ones(2 + hvd.rank()))
    assert_matched()


def test_after_a_join():
    for _ in range(hvd.rank()):
        hvd.allreduce(torch.ones(1))
    hvd.join()
    assert_matched()
