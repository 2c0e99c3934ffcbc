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
    "reduction": lambda: hvd.allreduce(torch.ones(4), name="x", op=rank_dependent(hvd.Sum, hvd.Max)),
    "factor": lambda: hvd.allreduce(torch.ones(4), name="x", prescale_factor=1.0 + hvd.rank() % 2),
    "operation": lambda: rank_dependent(hvd.allreduce, hvd.allgather)(torch.ones(4), name="x"),
    "root": lambda: hvd.broadcast(torch.ones(4), hvd.rank() % 2, name="x"),
    "gathered shape": lambda: hvd.allgather(torch.ones(2, 2 + hvd.rank() % 2), name="x"),
    "exchanged shape": lambda: hvd.alltoall(torch.ones(hvd.size(), 2 + hvd.rank() % 2), name="x"),
    "scattered shape": lambda: hvd.reducescatter(torch.ones(4 + hvd.rank() % 2), name="x"),
    "gathered type": lambda: hvd.allgather(torch.ones(2, dtype=rank_dependent(torch.int8, torch.bool)), name="x"),
    "broadcast shape": lambda: hvd.broadcast(torch.ones(2 + hvd.rank() % 2), 0, name="x"),
    "scattered factor": lambda: hvd.reducescatter(torch.ones(4), name="x", postscale_factor=1.0 + hvd.rank() % 2),
    "group": lambda: hvd.grouped_allreduce([torch.ones(2), torch.ones(2 + hvd.rank() % 2)], name="x"),
}


@pytest.mark.several_ranks
@pytest.mark.parametrize("what", sorted(MISMATCHES))
def test_mismatch_raises_on_all_ranks(what):
    with pytest.raises(HorovodRequestError, match=r"(?s)rank.*0.*rank.*1"):
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
        with pytest.raises(ValueError, match=r"twice.* is being processed already: wait for that operation"):
            hvd.allreduce_async(torch.ones(2), name="twice")
    hvd.barrier()  # only now do the others take part
    if hvd.rank() != 0:
        handle = hvd.allreduce_async(torch.ones(2), name="twice")
    assert torch.equal(hvd.synchronize(handle), torch.ones(2))


# Every collective, on one tensor.
OPERATIONS = {
    "allreduce": hvd.allreduce,
    "allreduce_": hvd.allreduce_,
    "grouped_allreduce": lambda t: hvd.grouped_allreduce([torch.ones(1), t]),
    "grouped_allreduce_": lambda t: hvd.grouped_allreduce_([torch.ones(1), t]),
    "allgather": hvd.allgather,
    "grouped_allgather": lambda t: hvd.grouped_allgather([torch.ones(1), t]),
    "broadcast": lambda t: hvd.broadcast(t, 0),
    "broadcast_": lambda t: hvd.broadcast_(t, 0),
    "grouped_broadcast": lambda t: hvd.grouped_broadcast([torch.ones(1), t], 0),
    "grouped_broadcast_": lambda t: hvd.grouped_broadcast_([torch.ones(1), t], 0),
    "alltoall": hvd.alltoall,
    "grouped_alltoall": lambda t: hvd.grouped_alltoall([torch.ones(0), t]),
    "reducescatter": hvd.reducescatter,
    "grouped_reducescatter": lambda t: hvd.grouped_reducescatter([torch.ones(1), t]),
}


def test_sparse_parameters_are_not_broadcast():
    with pytest.raises(ValueError, match=r"^Tensor type torch\.sparse\.FloatTensor is not supported\. "):
        hvd.broadcast_parameters([("sparse", torch.ones(2).to_sparse())], root_rank=0)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_unsupported_tensors_fail(operation):
    for tensor in (torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8), torch.ones(2).to_sparse()):
        with pytest.raises(
            ValueError,
            match=r"Tensor type torch.* is not supported\. Collectives take uint8, .*, complex64, complex128\.",
        ):
            OPERATIONS[operation](tensor)
    with pytest.raises(ValueError, match=r"Tensor is required to be contiguous\. Call its contiguous\(\) first\."):
        OPERATIONS[operation](torch.ones(12, 12).t())
    with pytest.raises(ValueError, match=r"needs a torch\.Tensor"):
        OPERATIONS[operation]([1.0])
    assert_usable()


def test_a_name_that_can_not_be_carried_is_refused():
    with pytest.raises(ValueError, match=r"a name of \d+ bytes is too long"):
        hvd.allreduce(torch.ones(2), name="n" * 20_000_000)
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name="after").tolist() == [hvd.size()] * 2


def test_adasum_of_integers_is_refused():
    with pytest.raises(ValueError, match="Adasum needs floating-point tensors"):
        hvd.allreduce(torch.tensor([1, 2]), op=hvd.Adasum)
    assert_usable()


def test_unknown_reduction_is_refused():
    for operation in (hvd.allreduce, hvd.reducescatter):
        with pytest.raises(ValueError, match=r"op=17 is not one of hvd\.Average"):
            operation(torch.ones(2), op=17)
    assert_usable()


def test_alltoall_of_more_rows_than_splits_can_tell_is_refused():
    rows = 2**32 + hvd.size()
    rows -= rows % hvd.size()
    tensor = torch.empty(rows, dtype=torch.uint8)  # not written to: it takes no memory
    others = [0] * (hvd.size() - 1)
    with pytest.raises(ValueError, match="a rank can be sent 2147483647 rows"):
        hvd.alltoall(tensor, splits=[2**32] + others)
    if hvd.size() == 1:
        with pytest.raises(ValueError, match="a rank can be sent 2147483647 rows"):
            hvd.alltoall(tensor)
    assert_usable()


@pytest.mark.several_ranks
@pytest.mark.parametrize("operation", ["allgather", "alltoall"])
def test_scalars_can_not_be_put_together(operation):
    with pytest.raises(HorovodRequestError, match="a tensor needs at least one dimension"):
        hvd.synchronize(getattr(hvd, operation + "_async")(torch.tensor(1.0), name="scalar"))
    assert_usable()


@pytest.mark.several_ranks
def test_scalar_on_one_rank_raises_on_all():
    tensor = torch.tensor(1.0) if hvd.rank() == 0 else torch.ones(2)
    with pytest.raises(HorovodRequestError, match="Mismatched"):
        hvd.synchronize(hvd.allgather_async(tensor, name="scalar"))
    assert_usable()


def test_scalars_and_empty_tensors_go_where_they_mean_something():
    scalar, empty = torch.tensor(2.0), torch.empty(0, 3)
    assert hvd.allreduce(scalar).shape == () and hvd.allreduce(empty).shape == (0, 3)
    first, second = hvd.grouped_allreduce([scalar, empty])
    assert first.item() == 2.0 and second.shape == (0, 3)
    assert hvd.broadcast(scalar, 0).shape == () and hvd.broadcast(empty, 0).shape == (0, 3)
    first, second = hvd.grouped_broadcast([scalar, empty], 0)
    assert first.item() == 2.0 and second.shape == (0, 3)
    assert hvd.allgather(empty).shape == (0, 3)
    assert hvd.grouped_allgather([empty, torch.ones(1)])[0].shape == (0, 3)
    assert hvd.alltoall(empty).shape == (0, 3)
    assert hvd.grouped_alltoall([empty])[0].shape == (0, 3)
    assert hvd.reducescatter(empty).shape == (0, 3)
    assert hvd.grouped_reducescatter([empty])[0].shape == (0, 3)


@pytest.mark.several_ranks
def test_mismatch_in_a_process_set_raises_on_its_members(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    some = hvd.add_process_set([0, 1] if hvd.size() > 2 else [1])
    if some.included() and some.size() > 1:
        with pytest.raises(HorovodRequestError, match="Mismatched"):
            hvd.allreduce(torch.ones(1 + hvd.rank()), name="x", process_set=some)
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=some).item() == 2
    assert_usable()
    assert hvd.remove_process_set(some)


def test_a_set_that_was_never_registered_is_a_type_error():
    for operation in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter):
        with pytest.raises(TypeError, match="is not registered"):
            operation(torch.ones(hvd.size()), process_set=hvd.ProcessSet([0]))
    with pytest.raises(TypeError, match="is not registered"):
        hvd.broadcast(torch.ones(1), 0, process_set=hvd.ProcessSet([0]))
    assert_usable()


@pytest.mark.several_ranks
def test_root_outside_the_process_set(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    some = hvd.add_process_set([1])
    if some.included():
        text = "broadcast: root rank 0 is not in the process set"
        with pytest.raises(ValueError, match=text):
            hvd.broadcast(torch.ones(1), 0, process_set=some)
    assert hvd.remove_process_set(some)


@pytest.mark.several_ranks
def test_after_a_peers_shutdown_every_operation_says_so():
    hvd.barrier()
    if hvd.rank() == 0:
        hvd.shutdown()
    else:
        for name in ("first", "second"):
            with pytest.raises(
                hvd.HorovodInternalError,
                match="Horovod has been shut down",
            ):
                hvd.allreduce(torch.ones(2), name=name)
        assert hvd.is_initialized() and 0 < hvd.rank() < hvd.size()
        hvd.shutdown()
    hvd.init()
    assert_usable()


def test_handles():
    handle = hvd.allreduce_async(torch.ones(2))
    assert isinstance(handle, int) and hvd.poll(handle) in (True, False)
    assert hvd.synchronize(handle) is not None
    assert hvd.synchronize(handle) is None
    with pytest.raises(ValueError, match=f"Handle {handle} was not created or has been cleared."):
        hvd.poll(handle)


def test_shutdown_and_init_again():
    kept = hvd.allgather(torch.arange(1000.0))
    for _ in range(3):
        hvd.shutdown()
        assert not hvd.is_initialized()
        with pytest.raises(ValueError, match=r"Horovod has not been initialized: call hvd\.init\(\) first"):
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


@pytest.mark.several_ranks
def test_different_models_are_explained():
    count = 1 + hvd.rank() % 2
    named = [(name, torch.nn.Parameter(torch.ones(2))) for name in "ab"[:count]]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p for _, p in named], lr=0.1), named)
    text = rf"they need the same parameters on all ranks \(this rank's has {count}\)"
    with pytest.raises(HorovodRequestError, match=text):
        named[0][1].sum().backward()
    del optimizer
    assert_usable()
