"""Cases of Horovod's own tests that no other file here has; data/horovods_cases.md says where all of
them are. On any number of ranks."""

import json
import os

import pytest
import torch

import horovod.torch as hvd

# Each gives a handle for a tensor with as many rows as there are ranks, or more.
ASYNCHRONOUS = {
    "allreduce": lambda tensor, name: hvd.allreduce_async(tensor, name=name, op=hvd.Sum),
    "allgather": lambda tensor, name: hvd.allgather_async(tensor, name=name),
    "broadcast": lambda tensor, name: hvd.broadcast_async(tensor, 0, name=name),
    "alltoall": lambda tensor, name: hvd.alltoall_async(tensor, name=name),
    "reducescatter": lambda tensor, name: hvd.reducescatter_async(tensor, name=name, op=hvd.Sum),
}


def rows():
    return torch.ones(2 * hvd.size(), 3)


def test_ranks_are_those_of_the_environment_in_each_world():
    for _ in range(2):
        assert hvd.rank() == int(os.environ.get("HOROVOD_RANK", 0))
        assert hvd.size() == int(os.environ.get("HOROVOD_SIZE", 1))
        hvd.shutdown()
        assert not hvd.is_initialized()
        hvd.init()
        assert hvd.is_initialized()


@pytest.mark.several_ranks
@pytest.mark.parametrize("kind", sorted(ASYNCHRONOUS))
def test_poll_is_false_as_long_as_a_rank_is_missing(kind):
    start = ASYNCHRONOUS[kind]
    if hvd.rank() != 0:
        handle = start(rows(), "late")
        assert not hvd.poll(handle)
    hvd.barrier()
    if hvd.rank() == 0:
        handle = start(rows(), "late")
    hvd.synchronize(handle)


@pytest.mark.several_ranks
@pytest.mark.parametrize("kind", sorted(ASYNCHRONOUS))
def test_name_of_an_operation_that_is_under_way_is_refused(kind):
    start = ASYNCHRONOUS[kind]
    if hvd.rank() != 0:
        handle = start(rows(), "twice")
        for _ in range(3):
            with pytest.raises(ValueError):
                start(rows(), "twice")
    hvd.barrier()
    if hvd.rank() == 0:
        handle = start(rows(), "twice")
    hvd.synchronize(handle)
    hvd.synchronize(start(rows(), "twice"))  # it is free again


def test_operations_of_different_kinds_may_have_one_name():
    handles = [ASYNCHRONOUS[kind](rows(), "same") for kind in sorted(ASYNCHRONOUS)]
    handles.append(hvd.grouped_allreduce_async([rows()], name="same"))
    handles.append(hvd.grouped_allgather_async([rows()], name="same"))
    for handle in handles:
        hvd.synchronize(handle)
    hvd.broadcast(hvd.allgather(hvd.allreduce(rows(), name="same"), name="same"), 0, name="same")


def test_allreduce_fuses_many_types_and_shapes():
    tensors = [
        torch.full([5] * dimensions, 3).to(dtype)
        for dtype in (torch.int32, torch.int64, torch.float32, torch.float64, torch.float16)
        for dimensions in (1, 2, 3)
    ]
    handles = [hvd.allreduce_async(tensor, op=hvd.Sum) for tensor in tensors]
    for tensor, handle in zip(tensors, handles):
        assert torch.equal(hvd.synchronize(handle), tensor * hvd.size())


def test_alltoall_of_every_rank_gives_its_number():
    mine = hvd.rank() + 1
    tensor = torch.arange(hvd.size()).repeat_interleave(mine).float().reshape(-1, 1).repeat(1, 2)
    received, splits = hvd.alltoall(tensor, torch.full((hvd.size(),), mine, dtype=torch.int32))
    assert splits.tolist() == list(range(1, hvd.size() + 1))
    assert (received == hvd.rank()).all() and len(received) == sum(splits)
    evenly = hvd.alltoall(tensor)
    assert torch.equal(evenly, received)


@pytest.mark.parametrize("silent", ["sends", "receives"])
def test_alltoall_with_a_rank_that_sends_or_receives_nothing(silent):
    last = hvd.size() - 1
    splits = [1] * hvd.size()
    if silent == "receives":
        splits[last] = 0
    elif hvd.rank() == last:
        splits = [0] * hvd.size()
    tensor = torch.full((sum(splits), 2), float(hvd.rank()), requires_grad=True)
    received, given = hvd.alltoall(tensor, torch.tensor(splits, dtype=torch.int32))
    if silent == "receives":
        expected = [] if hvd.rank() == last else list(range(hvd.size()))
    else:
        expected = list(range(last))
    assert received[:, 0].tolist() == expected and received.shape[1] == 2
    assert given.sum() == len(expected)
    received.sum().backward()
    assert torch.equal(tensor.grad, torch.ones_like(tensor))


def test_gradients_can_be_turned_on_and_off():
    """A generator and its discriminator train in turns in this way."""
    parts = [torch.nn.Conv2d(1, 10, 1), torch.nn.Conv2d(10, 1, 1)]
    optimizers = [
        hvd.DistributedOptimizer(torch.optim.SGD(part.parameters(), lr=0.1), named_parameters=part.named_parameters())
        for part in parts
    ]
    for part in parts:
        hvd.broadcast_parameters(part.state_dict(), 0)
    inputs = torch.rand(1, 1, 4, 4) + 0.1 + hvd.rank()
    for turn in range(6):
        trains = turn % 2
        for number, part in enumerate(parts):
            part.requires_grad_(number == trains)
        for optimizer in optimizers:
            optimizer.zero_grad()
        parts[1](parts[0](inputs)).sum().backward()
        for number, part in enumerate(parts):
            for p in part.parameters():
                has = p.grad is not None and bool(p.grad.abs().max() > 0)
                assert has == (number == trains)
        optimizers[trains].step()
    for part in parts:
        for p in part.parameters():
            assert torch.equal(hvd.broadcast(p.detach(), 0), p)


OPTIONS = {
    "SGD": (dict(lr=0.1, momentum=0.8, weight_decay=0.2, nesterov=True), dict(lr=0.2, momentum=0.9)),
    "Adam": (dict(lr=0.1, betas=(0.9, 0.999)), dict(lr=0.2, betas=(0.8, 0.9))),
    "Rprop": (
        dict(lr=0.1, etas=(0.8, 2.4), step_sizes=(1e-5, 100)),
        dict(lr=0.2, etas=(0.25, 1.75), step_sizes=(1e-7, 5)),
    ),
}


@pytest.mark.parametrize("kind", sorted(OPTIONS))
def test_options_of_the_root_come_with_their_types(kind):
    roots, others = OPTIONS[kind]
    model = torch.nn.Linear(3, 2)
    options = roots if hvd.rank() == 0 else others
    optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    def step():
        optimizer.zero_grad()
        model(torch.ones(4, 3)).pow(2).sum().backward()
        optimizer.step()

    step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for name, value in roots.items():
        assert repr(optimizer.param_groups[0][name]) == repr(value)
    step()


def test_optimizer_is_saved_by_one_rank_and_given_to_all(tmp_path):
    def training():
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
        optimizer = torch.optim.RMSprop(model.parameters(), lr=0.2, momentum=0.9, centered=True)
        return model, hvd.DistributedOptimizer(optimizer, model.named_parameters())

    model, optimizer = training()
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    expected = hvd.broadcast_object((model.state_dict(), optimizer.state_dict()["state"]))
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a")
    torch.manual_seed(100 + hvd.rank())
    model, optimizer = training()
    if hvd.rank() == 0:
        saved = torch.load(tmp_path / "a")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert_same((model.state_dict(), optimizer.state_dict()["state"]), expected)


def assert_same(found, expected):
    if isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, tuple):
        for one, other in zip(found, expected):
            assert_same(one, other)
    else:
        assert found == expected and type(found) is type(expected)


def test_names_given_by_the_optimizer_are_all_different_and_alike_on_all_ranks():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    groups = [{"params": part.parameters()} for part in model]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(groups, lr=0.1))
    names = list(optimizer._parameter_names.values())
    assert len(set(names)) == len(names) == 4
    assert hvd.allgather_object(names) == [names] * hvd.size()


def test_timeline_can_be_resumed_with_other_files(tmp_path):
    folder = hvd.broadcast_object(str(tmp_path))
    for number, cycles in enumerate([True, True, False, True]):
        path = os.path.join(folder, f"timeline-{number}")
        hvd.start_timeline(path, mark_cycles=cycles)
        hvd.allreduce(torch.ones(3), name="test_allreduce")
        hvd.barrier()
        hvd.stop_timeline()
        if hvd.rank() == 0:
            with open(path) as file:
                text = file.read()
            assert json.loads(text)
            assert "allreduce.test_allreduce" in text and "NEGOTIATE_ALLREDUCE" in text
            assert "start_time_since_epoch_in_micros" in text
            assert ("CYCLE_START" in text) == cycles
