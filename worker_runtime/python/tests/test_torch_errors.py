"""Errors, which must leave the world usable, and its beginning and end. On any number of ranks."""

import warnings

import pytest
import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodRequestError


def assert_usable():
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name="usable").tolist() == [hvd.size()] * 2


def rank_dependent(even, odd):
    return even if hvd.rank() % 2 == 0 else odd


MISMATCHES = {
    "dtype": lambda: hvd.allreduce(
        torch.ones(4, dtype=rank_dependent(torch.float32, torch.int32)), name="x", op=hvd.Sum
    ),
    "shape": lambda: hvd.allreduce(torch.ones(4 + hvd.rank() % 2), name="x"),
    "dimensions": lambda: hvd.allreduce(torch.ones(rank_dependent((4, 2), (8,))), name="x"),
    "reduction": lambda: hvd.allreduce(
        torch.ones(4), name="x", op=rank_dependent(hvd.Sum, hvd.Max)
    ),
    "factor": lambda: hvd.allreduce(torch.ones(4), name="x", prescale_factor=1.0 + hvd.rank() % 2),
    "operation": lambda: rank_dependent(hvd.allreduce, hvd.allgather)(torch.ones(4), name="x"),
    "root": lambda: hvd.broadcast(torch.ones(4), hvd.rank() % 2, name="x"),
    "gathered shape": lambda: hvd.allgather(torch.ones(2, 2 + hvd.rank() % 2), name="x"),
    "exchanged shape": lambda: hvd.alltoall(torch.ones(hvd.size(), 2 + hvd.rank() % 2), name="x"),
    "scattered shape": lambda: hvd.reducescatter(torch.ones(4 + hvd.rank() % 2), name="x"),
    "group": lambda: hvd.grouped_allreduce(
        [torch.ones(2), torch.ones(2 + hvd.rank() % 2)], name="x"
    ),
}


@pytest.mark.several_ranks
@pytest.mark.parametrize("what", sorted(MISMATCHES))
def test_mismatch_raises_on_all_ranks(what):
    with pytest.raises(HorovodRequestError, match="(?s)rank.*0.*rank.*1"):
        MISMATCHES[what]()
    assert_usable()


@pytest.mark.several_ranks
def test_mismatch_of_names_in_order_raises_on_all_ranks():
    """Both wait for what the other does not send."""
    with pytest.raises(HorovodRequestError):
        hvd.allreduce(torch.ones(2), name=rank_dependent("first", "second"))
    assert_usable()


@pytest.mark.several_ranks
def test_duplicate_name_fails():
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(2), name="twice")
        with pytest.raises(
            ValueError, match="Requested to allreduce, allgather, or broadcast a tensor"
        ):
            hvd.allreduce_async(torch.ones(2), name="twice")
    hvd.barrier()  # only now do the others take part
    if hvd.rank() != 0:
        handle = hvd.allreduce_async(torch.ones(2), name="twice")
    assert torch.equal(hvd.synchronize(handle), torch.ones(2))


def test_unsupported_tensors_fail():
    for tensor in (torch.ones(2, dtype=torch.complex64), torch.ones(2).to_sparse()):
        with pytest.raises(ValueError, match="Tensor type torch.* is not supported."):
            hvd.allreduce(tensor)
    for operation in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter):
        with pytest.raises(ValueError, match="Tensor is required to be contiguous."):
            operation(torch.ones(4, 6).t())
    assert_usable()


def test_handles():
    handle = hvd.allreduce_async(torch.ones(2))
    assert isinstance(handle, int) and hvd.poll(handle) in (True, False)
    assert hvd.synchronize(handle) is not None
    assert hvd.synchronize(handle) is None
    with pytest.raises(
        ValueError, match="Handle {} was not created or has been cleared.".format(handle)
    ):
        hvd.poll(handle)


def test_shutdown_and_init_again():
    kept = hvd.allgather(torch.arange(1000.0))
    for _ in range(3):
        hvd.shutdown()
        assert not hvd.is_initialized()
        with pytest.raises(ValueError, match="Horovod has not been initialized; use hvd.init()"):
            hvd.rank()
        with pytest.raises(hvd.HorovodInternalError, match="Horovod has not been initialized"):
            hvd.allreduce(torch.ones(2))
        hvd.init()
        assert_usable()
    assert torch.equal(kept, torch.arange(1000.0).repeat(hvd.size()))  # its memory is still there


def test_no_warnings_in_plain_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hvd.allreduce(torch.ones(2))
        hvd.allgather(torch.ones(2))
