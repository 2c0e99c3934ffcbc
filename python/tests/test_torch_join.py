"""Operations that work, and that fail, while some ranks have joined. Runs on any number of ranks."""

import pytest
import torch

import horovod.torch as hvd
from horovod.common import ops
from horovod.common.exceptions import HorovodRequestError
from test_torch_unnamed import assert_matched

ONES = torch.ones(3)


def joined_early(work):
    """Rank 0 joins at once, the others after `work()`; returns the last rank to join."""
    hvd.barrier()
    if hvd.rank() != 0:
        work()
    return hvd.join()


@pytest.mark.several_ranks
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8])
def test_allreduce_continues_with_neutral_elements(dtype):
    left = hvd.size() - 1
    twos = torch.full((3,), 2, dtype=dtype)

    def work():
        assert hvd.allreduce(twos, op=hvd.Sum).tolist() == [2 * left] * 3
        average = hvd.allreduce(torch.full((3,), 4 * hvd.size()).to(dtype), op=hvd.Average)
        assert average.tolist() == [4 * left] * 3  # over all ranks, joined ones too
        assert hvd.allreduce(twos, op=hvd.Min).tolist() == [2] * 3
        assert hvd.allreduce(twos, op=hvd.Max).tolist() == [2] * 3
        assert hvd.allreduce(twos, op=hvd.Product).tolist() == [2**left] * 3
        first, second = hvd.grouped_allreduce([twos, twos], op=hvd.Sum)
        assert first.tolist() == second.tolist() == [2 * left] * 3

    assert joined_early(work) != 0
    assert_matched()


@pytest.mark.several_ranks
def test_allreduce_of_the_other_types():
    left = hvd.size() - 1

    def work():
        assert hvd.allreduce(torch.tensor([True]), op=hvd.Min).item() is True
        assert hvd.allreduce(torch.tensor([False]), op=hvd.Max).item() is False
        assert hvd.allreduce(torch.tensor([-3], dtype=torch.int8), op=hvd.Max).item() == -3
        assert hvd.allreduce(torch.tensor([-3.0]), op=hvd.Max).item() == -3.0
        assert hvd.allreduce(torch.tensor(2.0), op=hvd.Sum).item() == 2.0 * left
        assert hvd.allreduce(torch.empty(0), op=hvd.Sum).numel() == 0
        equal = hvd.allreduce(torch.ones(2), op=hvd.Adasum)
        if left == 1:
            assert equal.tolist() == [1, 1]
        assert torch.isfinite(equal).all()

    joined_early(work)
    assert_matched()


REFUSED = {
    "allgather": lambda: hvd.allgather(ONES),
    "grouped_allgather": lambda: hvd.grouped_allgather([ONES]),
    "broadcast": lambda: hvd.broadcast(ONES, hvd.size() - 1),
    "grouped_broadcast": lambda: hvd.grouped_broadcast([ONES], hvd.size() - 1),
    "alltoall": lambda: hvd.alltoall(torch.ones(hvd.size())),
    "grouped_alltoall": lambda: hvd.grouped_alltoall([torch.ones(hvd.size())]),
    "reducescatter": lambda: hvd.reducescatter(ONES),
    "grouped_reducescatter": lambda: hvd.grouped_reducescatter([ONES]),
    "sparse_allreduce": lambda: hvd.sparse_allreduce_async(torch.eye(2).to_sparse(), "s", hvd.Sum)(),
    "broadcast_object": lambda: hvd.broadcast_object(1, hvd.size() - 1),
    "allgather_object": lambda: hvd.allgather_object(1),
    "barrier": hvd.barrier,
    "commit": lambda: ops.synchronize(ops.commit_async()),
}


@pytest.mark.several_ranks
@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_what_needs_all_ranks_fails_on_those_that_have_not_joined(kind):
    def work():
        with pytest.raises(HorovodRequestError, match="rank 0 has joined, and only allreduce goes"):
            REFUSED[kind]()
        # They can continue.
        assert hvd.allreduce(ONES, op=hvd.Sum).tolist() == [hvd.size() - 1.0] * 3

    joined_early(work)
    assert_matched()


@pytest.mark.several_ranks
def test_process_sets_continue_without_those_that_are_not_in_them(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    others = hvd.add_process_set(list(range(1, hvd.size())))

    def work():
        hvd.barrier(process_set=others)
        assert hvd.allgather(torch.ones(1), process_set=others).numel() == hvd.size() - 1
        root = hvd.size() - 1
        value = hvd.broadcast(torch.tensor([hvd.rank()]), root, process_set=others)
        assert value.item() == root

    joined_early(work)
    assert hvd.remove_process_set(others)
    assert_matched()


@pytest.mark.several_ranks
def test_operations_of_a_process_set_wait_for_members_that_have_joined(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    ends = hvd.add_process_set([0, hvd.size() - 1] if hvd.size() > 2 else [0])
    mine = hvd.rank() == ends.ranks[-1]
    if mine:
        handle = hvd.allreduce_async(torch.ones(1), op=hvd.Sum, name="e", process_set=ends)
    hvd.join()
    if ends.included():
        if not mine:
            handle = hvd.allreduce_async(torch.ones(1), op=hvd.Sum, name="e", process_set=ends)
        assert hvd.synchronize(handle).item() == ends.size()
    assert hvd.remove_process_set(ends)


def test_the_last_rank_is_the_same_on_all():
    last = hvd.join()
    assert hvd.allgather(torch.tensor([last])).tolist() == [last] * hvd.size()
    assert 0 <= last < hvd.size()


def test_join_twice_and_with_a_device():
    hvd.join()
    assert hvd.join(device=0) in range(hvd.size())
    assert_matched()
