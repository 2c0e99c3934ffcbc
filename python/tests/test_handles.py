"""Handles of operations that a script does not wait for. On any number of ranks."""

import copy
import pickle
import weakref

import numpy
import pytest
import torch

import horovod.numpy
import horovod.torch as hvd
from horovod import _ffi
from horovod.common import ops
from horovod.common.exceptions import HorovodRequestError


def of_torch(start):
    return lambda: start(torch.ones(4 * hvd.size(), 2))


def of_numpy(start):
    return lambda: start(numpy.ones((4 * hvd.size(), 2)))


STARTS = {
    "allreduce": of_torch(hvd.allreduce_async),
    "allreduce_": of_torch(hvd.allreduce_async_),
    "grouped_allreduce": of_torch(lambda t: hvd.grouped_allreduce_async([t, t + 1])),
    "grouped_allreduce_": of_torch(lambda t: hvd.grouped_allreduce_async_([t, t + 1])),
    "allgather": of_torch(hvd.allgather_async),
    "grouped_allgather": of_torch(lambda t: hvd.grouped_allgather_async([t, t])),
    "broadcast": of_torch(lambda t: hvd.broadcast_async(t, 0)),
    "broadcast_": of_torch(lambda t: hvd.broadcast_async_(t, 0)),
    "grouped_broadcast": of_torch(lambda t: hvd.grouped_broadcast_async([t], 0)),
    "grouped_broadcast_": of_torch(lambda t: hvd.grouped_broadcast_async_([t], 0)),
    "alltoall": of_torch(hvd.alltoall_async),
    "grouped_alltoall": of_torch(lambda t: hvd.grouped_alltoall_async([t])),
    "reducescatter": of_torch(hvd.reducescatter_async),
    "grouped_reducescatter": of_torch(lambda t: hvd.grouped_reducescatter_async([t])),
    "allreduce of numpy": of_numpy(horovod.numpy.allreduce_async),
    "grouped_allreduce of numpy": of_numpy(lambda a: horovod.numpy.grouped_allreduce_async([a])),
    "allgather of numpy": of_numpy(horovod.numpy.allgather_async),
    "broadcast of numpy": of_numpy(lambda a: horovod.numpy.broadcast_async(a, 0)),
    "alltoall of numpy": of_numpy(horovod.numpy.alltoall_async),
    "reducescatter of numpy": of_numpy(horovod.numpy.reducescatter_async),
}


def wait_for(handles):
    """Waits without taking the results, then starts another operation."""
    for handle in handles:
        _ffi.wait(handle)
    hvd.barrier()


@pytest.mark.parametrize("what", STARTS)
def test_memory_of_operations_without_a_waiter(what):
    before = set(ops._in_flight)
    for _ in range(3):
        STARTS[what]()
    wait_for(set(ops._in_flight) - before)
    assert set(ops._in_flight) == before and not ops._dropped


def test_tensors_of_an_operation_without_a_waiter():
    tensor = torch.ones(1000)
    gone = weakref.ref(tensor)
    before = set(ops._in_flight)
    handle = hvd.allreduce_async_(tensor)
    del tensor
    wait_for(set(ops._in_flight) - before)
    assert gone() is not None, "a handle keeps the result"
    del handle
    assert gone() is None and set(ops._in_flight) == before


def test_an_operation_runs_to_its_end_without_its_handle():
    tensor = torch.ones(5)
    before = set(ops._in_flight)
    hvd.allreduce_async_(tensor, op=hvd.Sum)
    wait_for(set(ops._in_flight) - before)
    assert tensor.tolist() == [hvd.size()] * 5


@pytest.mark.several_ranks
def test_error_without_a_waiter_is_lost():
    before = set(ops._in_flight)
    hvd.allreduce_async(torch.ones(2 + hvd.rank()), name="mismatch")
    for handle in set(ops._in_flight) - before:
        with pytest.raises(HorovodRequestError):
            _ffi.wait(handle)
    hvd.barrier()
    assert set(ops._in_flight) == before


def test_copies_of_a_handle_are_numbers():
    handle = hvd.allreduce_async(torch.ones(2), op=hvd.Sum)
    for copied in (copy.copy(handle), copy.deepcopy(handle), pickle.loads(pickle.dumps(handle)), handle + 0):
        assert type(copied) is int and copied == handle and hvd.poll(copied) in (True, False)
        del copied
    assert hvd.synchronize(int(handle)).tolist() == [hvd.size()] * 2
    assert hvd.synchronize(handle) is None
