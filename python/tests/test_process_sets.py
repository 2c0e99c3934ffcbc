"""Process sets: registration, collectives on them, and what goes wrong. On any number of ranks."""

import contextlib
import os

import pytest
import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodRequestError


@pytest.fixture(autouse=True)
def dynamic(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")


@contextlib.contextmanager
def added(ranks):
    process_set = hvd.add_process_set(ranks)
    try:
        yield process_set
    finally:
        assert hvd.remove_process_set(process_set) is True


def assert_usable():
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name="usable").tolist() == [hvd.size()] * 2


def evens_and_odds():
    return list(range(0, hvd.size(), 2)), list(range(1, hvd.size(), 2))


def halves():
    """Two sets that share a rank if there are three or more."""
    middle = hvd.size() // 2
    return list(range(middle + 1 if hvd.size() > 2 else middle)), list(range(middle, hvd.size()))


def test_attributes_before_registration():
    process_set = hvd.ProcessSet([hvd.size() - 1, 0][: hvd.size()])
    assert process_set.ranks == sorted({0, hvd.size() - 1})
    for value in (
        process_set.process_set_id,
        process_set.mpi_comm,
        process_set.size(),
        process_set.rank(),
    ):
        assert value is None
    for rank in range(hvd.size()):
        assert hvd.ProcessSet(ranks_or_comm=[rank]).included() is (hvd.rank() == rank)
    for bad in ([0.5], "01", 3, None, ["0"], [2**40]):
        with pytest.raises(ValueError):
            hvd.ProcessSet(bad)
    with pytest.raises(TypeError):
        hvd.allreduce(torch.ones(2), process_set=process_set)
    with pytest.raises(TypeError):
        hvd.barrier(process_set=[0])


def test_global_process_set():
    assert hvd.global_process_set.process_set_id == 0
    assert hvd.global_process_set.ranks == list(range(hvd.size()))
    assert hvd.global_process_set.size() == hvd.size()
    assert hvd.global_process_set.rank() == hvd.rank()
    assert hvd.global_process_set.included()
    assert hvd.remove_process_set(hvd.global_process_set) is False
    for duplicate in (list(range(hvd.size())), hvd.global_process_set):
        with pytest.raises(ValueError, match="Attempted to add a duplicate process set"):
            hvd.add_process_set(duplicate)
    assert_usable()


def test_set_of_all_ranks_may_be_added_in_an_elastic_job(monkeypatch):
    """There a set can become that of all ranks by losses, and a process that starts then adds it, too."""
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    everyone = list(range(hvd.size()))
    with added(everyone) as process_set:
        assert process_set.process_set_id == 0 and process_set.ranks == everyone
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=process_set).item() == hvd.size()
        with pytest.raises(ValueError, match="duplicate process set: it is the set of all ranks"):
            hvd.add_process_set(everyone)
    assert_usable()


@pytest.mark.several_ranks
def test_adding_needs_the_dynamic_mode(monkeypatch):
    with added([1]) as process_set:
        monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "0")
        with pytest.raises(ValueError, match="HOROVOD_DYNAMIC_PROCESS_SETS=1"):
            hvd.add_process_set([0])
        with pytest.raises(ValueError, match="HOROVOD_DYNAMIC_PROCESS_SETS=1"):
            hvd.remove_process_set(process_set)
        assert hvd.remove_process_set(hvd.ProcessSet([0])) is False
        monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")


def test_bad_sets_fail_on_all_ranks():
    size = hvd.size()
    with pytest.raises(ValueError, match=f"there is no rank {size}"):
        hvd.add_process_set([0, size])
    with pytest.raises(ValueError, match="there is no rank -1"):
        hvd.add_process_set([-1])
    with pytest.raises(ValueError, match="rank 0 is named twice"):
        hvd.add_process_set([0, 0])
    with pytest.raises(ValueError, match="at least one rank"):
        hvd.add_process_set([])
    assert hvd.remove_process_set(hvd.ProcessSet([0])) is False
    assert_usable()


@pytest.mark.several_ranks
def test_different_requests_fail_on_all_ranks():
    ranks = [0] if hvd.rank() == 0 else [0, 1] if hvd.size() > 2 else [1]
    with pytest.raises(ValueError, match=r"rank 0 wants to add \[0\], .* add \[.*1\]"):
        hvd.add_process_set(ranks)
    with added([0]) as first, added([1]) as second:
        with pytest.raises(ValueError, match="Mismatched process sets: rank 0 wants to remove"):
            hvd.remove_process_set(first if hvd.rank() == 0 else second)
        with pytest.raises(ValueError, match="Attempted to add a duplicate process set"):
            hvd.add_process_set(hvd.ProcessSet([0]))
    assert_usable()


@pytest.mark.several_ranks
def test_members_and_others():
    with added([1]) as process_set:
        assert process_set.process_set_id > 0 and process_set.ranks == [1]
        assert process_set.size() == 1
        assert process_set.included() is (hvd.rank() == 1)
        if hvd.rank() == 1:
            assert process_set.rank() == 0
            assert hvd.allreduce(torch.ones(2), process_set=process_set).tolist() == [1, 1]
            return
        with pytest.raises(ValueError, match="not a member"):
            process_set.rank()
        ones = torch.ones(2)
        operations = {
            "Allreduce": lambda: hvd.allreduce(ones, process_set=process_set),
            "Allgather": lambda: hvd.allgather(ones, process_set=process_set),
            "Broadcast": lambda: hvd.broadcast(ones, 1, process_set=process_set),
            "Alltoall": lambda: hvd.alltoall(ones, process_set=process_set),
            "Reducescatter": lambda: hvd.reducescatter(ones, process_set=process_set),
            "Barrier": lambda: hvd.barrier(process_set=process_set),
        }
        for kind, operation in operations.items():
            text = "{}: rank {} is not in process set"
            with pytest.raises(ValueError, match=text.format(kind, hvd.rank())):
                operation()


@pytest.mark.several_ranks
def test_removed_set_can_not_be_used():
    process_set = hvd.add_process_set([0])
    first_id = process_set.process_set_id
    assert hvd.remove_process_set(process_set) is True
    assert process_set.process_set_id is None and process_set.size() is None
    assert process_set.included() is (hvd.rank() == 0)
    assert hvd.remove_process_set(process_set) is False
    with pytest.raises(TypeError):
        hvd.allreduce(torch.ones(2), process_set=process_set)
    with added([0]) as again:
        assert again.process_set_id > first_id
    with added(process_set) as again:
        assert again is process_set and process_set.ranks == [0]
        assert process_set.included() is (hvd.rank() == 0)


@pytest.mark.several_ranks
@pytest.mark.parametrize("partition", [evens_and_odds, halves])
def test_collectives(partition):
    with contextlib.ExitStack() as stack:
        sets = [stack.enter_context(added(ranks)) for ranks in partition()]
        for process_set in sets:
            if process_set.included():
                check_collectives(process_set)
        assert_usable()


def check_collectives(process_set):
    ranks, n, mine = process_set.ranks, process_set.size(), process_set.rank()
    me = torch.full((3,), float(hvd.rank()))
    arguments = dict(process_set=process_set)
    average = hvd.allreduce(me, **arguments)
    assert torch.allclose(average, torch.full((3,), sum(ranks) / n))
    assert hvd.allreduce(me, op=hvd.Max, **arguments).tolist() == [max(ranks)] * 3
    summed = hvd.grouped_allreduce([me, me.int()], op=hvd.Sum, **arguments)
    assert [tensor.tolist() for tensor in summed] == [[sum(ranks)] * 3] * 2
    gathered = hvd.allgather(me[: mine + 1], **arguments)
    expected = [float(rank) for i, rank in enumerate(ranks) for _ in range(min(i + 1, 3))]
    assert gathered.tolist() == expected
    root = ranks[-1]
    assert hvd.broadcast(me, root, **arguments).tolist() == [root] * 3
    if n < hvd.size():
        outside = next(rank for rank in range(hvd.size()) if rank not in ranks)
        text = f"broadcast: root rank {outside} is not in the process set, whose ranks are {ranks[0]}"
        with pytest.raises(ValueError, match=text):
            hvd.broadcast(me, outside, **arguments)
    received, splits = hvd.alltoall(me.repeat(n)[: 2 * n], [2] * n, **arguments)
    assert received.tolist() == [float(rank) for rank in ranks for _ in range(2)]
    assert splits.tolist() == [2] * n
    with pytest.raises(ValueError, match=f"alltoall needs {n} splits"):
        hvd.alltoall(me.repeat(n), [1] * (n + 1), **arguments)
    scattered = hvd.reducescatter(torch.arange(float(n)), op=hvd.Sum, **arguments)
    assert scattered.tolist() == [float(mine * n)]
    hvd.barrier(**arguments)
    assert hvd.allgather_object({"rank": hvd.rank()}, **arguments) == [{"rank": r} for r in ranks]
    assert hvd.broadcast_object(hvd.rank(), root, **arguments) == root
    assert hvd.allreduce(me + 1, op=hvd.Adasum, **arguments).shape == me.shape
    sparse = torch.eye(4).to_sparse()
    dense = hvd.sparse_allreduce_async(sparse, None, hvd.Average, process_set)().to_dense()
    assert torch.allclose(dense, torch.eye(4))


@pytest.mark.several_ranks
def test_gradients():
    for ranks in evens_and_odds():
        with added(ranks) as process_set:
            if not process_set.included():
                continue
            n, mine = process_set.size(), process_set.rank()
            x = torch.full((2,), 1.0, requires_grad=True)
            gathered = hvd.allgather(x, process_set=process_set)
            (gathered * torch.arange(float(2 * n))).sum().backward()
            assert x.grad.tolist() == [2.0 * mine, 2.0 * mine + 1]
            x.grad = None
            hvd.reducescatter(x.repeat(n)[: 2 * n], op=hvd.Sum, process_set=process_set).sum().backward()
            assert x.grad.tolist() == [float(n * n)] * 2
            x.grad = None
            hvd.broadcast(x, ranks[0], process_set=process_set).sum().backward()
            assert x.grad.tolist() == ([1.0, 1.0] if mine == 0 else [0.0, 0.0])


@pytest.mark.several_ranks
def test_sets_do_not_wait_for_each_other():
    """Rank 0 has an operation of one set in flight, which waits for the last rank, and goes on with
    the other's."""
    last = hvd.size() - 1
    everyone = hvd.global_process_set
    with added([0]) as alone:
        if hvd.rank() == 0:
            waiting = hvd.allreduce_async(torch.ones(1), op=hvd.Sum, name="x")
            for _ in range(20):
                hvd.allreduce(torch.ones(1), name="x", process_set=alone)
            if hvd.size() > 1:
                assert not hvd.poll(waiting)
        hvd.barrier(process_set=everyone)
        if hvd.rank() != 0:
            waiting = hvd.allreduce_async(torch.ones(1), op=hvd.Sum, name="x")
        assert hvd.synchronize(waiting).tolist() == [last + 1]


@pytest.mark.several_ranks
def test_unnamed_operations_count_within_a_set():
    with added([0]) as alone:
        if alone.included():
            for _ in range(3):
                hvd.allreduce(torch.ones(1), process_set=alone)
        assert_usable()
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).tolist() == [hvd.size()]


@pytest.mark.several_ranks
def test_mismatch_names_the_set():
    ranks = list(range(hvd.size() - 1)) if hvd.size() > 2 else [1]
    with added(ranks) as process_set:
        if process_set.included() and process_set.size() > 1:
            with pytest.raises(
                HorovodRequestError,
                match=f"(?s)rank 0 sent .*process set {process_set.process_set_id}",
            ):
                hvd.allreduce(torch.ones(1 + process_set.rank()), name="x", process_set=process_set)
        assert_usable()


def trained(optimizer_of, data):
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    optimizer = optimizer_of(model)
    for _ in range(3):
        optimizer.zero_grad()
        model(data).pow(2).mean().backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.several_ranks
@pytest.mark.parametrize("options", [{}, {"groups": 2}, {"op": hvd.Adasum}], ids=str)
def test_distributed_optimizer(options):
    """Members train together; the others as without Horovod."""
    for ranks in evens_and_odds():
        with added(ranks) as process_set:
            data = torch.full((2, 4), 1.0 + hvd.rank())
            local = trained(lambda model: torch.optim.SGD(model.parameters(), lr=0.01), data)
            together = trained(
                lambda model: hvd.DistributedOptimizer(
                    torch.optim.SGD(model.parameters(), lr=0.01),
                    named_parameters=model.named_parameters(),
                    process_set=process_set,
                    **options,
                ),
                data,
            )
            is_local = all(torch.equal(a, b) for a, b in zip(local, together))
            assert is_local == (not process_set.included() or process_set.size() == 1)
            if process_set.included():
                for tensor in together:
                    peers = hvd.allgather(tensor.reshape(1, -1), process_set=process_set)
                    assert (peers == peers[0]).all()


@pytest.mark.several_ranks
def test_broadcasting_models():
    for ranks in evens_and_odds():
        with added(ranks) as process_set:
            root = ranks[-1]
            model = torch.nn.Linear(2, 2)
            with torch.no_grad():
                model.weight.fill_(float(hvd.rank()))
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0 + hvd.rank(), momentum=0.9)
            if process_set.included():
                hvd.broadcast_parameters(model.state_dict(), root, process_set=process_set)
                hvd.broadcast_optimizer_state(optimizer, root, process_set=process_set)
            expected = root if process_set.included() else hvd.rank()
            assert (model.weight == expected).all()
            assert optimizer.param_groups[0]["lr"] == 1.0 + expected


def test_static_sets():
    """The same objects serve again after another init."""
    sets = [hvd.ProcessSet(ranks) for ranks in evens_and_odds()] if hvd.size() > 1 else []
    by_rule = hvd.ProcessSet(rule=lambda size: [size - 1])
    if hvd.size() > 2:
        sets.append(by_rule)
    hvd.shutdown()
    try:
        for _ in range(2):
            hvd.init(process_sets=sets)
            for i, process_set in enumerate(sets):
                assert process_set.process_set_id == i + 1
                if process_set.included():
                    total = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=process_set)
                    assert total.tolist() == [process_set.size()]
            if hvd.size() > 2:
                assert by_rule.ranks == [hvd.size() - 1]
            hvd.barrier()  # who leaves ends what the others have in flight
            hvd.shutdown()
            assert all(process_set.process_set_id is None for process_set in sets)
    finally:
        hvd.init()


def test_bad_static_sets_fail():
    hvd.shutdown()
    try:
        for bad in ([hvd.ProcessSet([0, 99])], [[0]], "static"):
            with pytest.raises(ValueError):
                hvd.init(process_sets=bad)
            assert not hvd.is_initialized()
    finally:
        hvd.init()
    assert_usable()


def test_dynamic_by_init(monkeypatch):
    monkeypatch.delenv("HOROVOD_DYNAMIC_PROCESS_SETS")
    hvd.shutdown()
    hvd.init(process_sets="dynamic")
    assert os.environ.pop("HOROVOD_DYNAMIC_PROCESS_SETS") == "1"


@pytest.mark.several_ranks
def test_joining_does_not_renumber_operations_of_sets():
    with added([0]) as alone:
        if alone.included():
            handle = hvd.allreduce_async(torch.ones(1), process_set=alone)
        hvd.join()
        if alone.included():
            assert hvd.synchronize(handle).tolist() == [1]
            hvd.allreduce(torch.ones(1), process_set=alone)
        assert_usable()
