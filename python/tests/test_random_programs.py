"""Random programs of collectives against a plain NumPy model (program_model.py). Runs on any number
of ranks.

HOROVOD_TEST_PROGRAMS says how many, HOROVOD_TEST_SEED which is the first; a failure prints its
seed, and ``HOROVOD_TEST_PROGRAMS=1 HOROVOD_TEST_SEED=<seed> python run_ranks.py <ranks>
test_random_programs.py`` repeats it.
"""

import os
import random

import numpy as np
import pytest
import torch

import horovod.torch as hvd
import program_model as model
from horovod.common.exceptions import HorovodRequestError

COUNT = int(os.environ.get("HOROVOD_TEST_PROGRAMS", "350"))
FIRST = int(os.environ.get("HOROVOD_TEST_SEED", "0"))
CHUNK = 50
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-10}


@pytest.fixture(scope="module")
def sets():
    """Process sets to choose from, by their members: all ranks, overlapping parts, and one rank."""
    size = hvd.size()
    members = {tuple(range(size - 1)), tuple(range(1, size)), (size - 1,)} - {(), (0,) * (size == 1)}
    before = os.environ.get("HOROVOD_DYNAMIC_PROCESS_SETS")
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    parts = {ranks: hvd.add_process_set(list(ranks)) for ranks in sorted(members)}
    yield {tuple(range(size)): hvd.global_process_set, **parts}
    for part in parts.values():
        hvd.remove_process_set(part)
    if before is None:
        del os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"]


def to_torch(array, dtype):
    return torch.tensor(array.tolist(), dtype=getattr(torch, dtype)).reshape(array.shape)


def assert_equal(result, wanted, dtype):
    wanted = np.asarray(wanted)
    assert result.dtype == getattr(torch, dtype)
    assert tuple(result.shape) == wanted.shape
    if dtype in TOLERANCE:
        assert torch.allclose(
            result.double(),
            torch.from_numpy(wanted.astype(np.float64)),
            rtol=TOLERANCE[dtype],
            atol=TOLERANCE[dtype],
        ), (result, wanted)
    else:
        assert torch.equal(result, torch.from_numpy(wanted)), (result, wanted)


def spoiled(step, inputs, way):
    """The step as the rank that gets it wrong does it."""
    if way == "type":
        other = torch.float64 if inputs[0].dtype != torch.float64 else torch.float32
        return step, [inputs[0].to(other)] + inputs[1:]
    if way == "shape":
        return step, [torch.cat([inputs[0].reshape(-1)] * 2 + [inputs[0].new_ones(1)])] + inputs[1:]
    if way == "root":
        others = [member for member in step.members if member != step.root]
        return step._replace(root=others[0]), inputs
    return step._replace(postscale=step.postscale * 3), inputs


class Submitted:
    """A step in flight on this rank."""

    def __init__(self, step, process_set):
        self.step = step
        self.place = step.members.index(hvd.rank())
        inputs = [to_torch(model.value_of(t, self.place), t.dtype) for t in step.tensors]
        if step.wrong is not None and step.wrong[0] == hvd.rank():
            step, inputs = spoiled(step, inputs, step.wrong[1])
        self.inputs = inputs
        self.copies = [tensor.clone() for tensor in inputs]
        self.handle = self._start(step, inputs, process_set)

    def _start(self, step, inputs, process_set):
        common = dict(name=step.name or None, process_set=process_set)
        grouped = len(inputs) > 1 and step.kind != "broadcast"
        value = inputs if grouped else inputs[0]
        prefix = "grouped_" if grouped else ""
        if step.kind in ("allreduce", "reducescatter"):
            suffix = "_async_" if step.in_place else "_async"
            start = getattr(hvd, prefix + step.kind + suffix)
            factors = dict(prescale_factor=step.prescale, postscale_factor=step.postscale)
            return start(value, op=step.reduction, **factors, **common)
        if step.kind == "allgather":
            return getattr(hvd, prefix + "allgather_async")(value, **common)
        if step.kind == "broadcast":
            start = hvd.broadcast_async_ if step.in_place else hvd.broadcast_async
            return start(value, step.root, **common)
        splits = None if step.splits is None else step.splits[self.place]
        return hvd.alltoall_async(value, splits, **common)

    def check(self):
        if self.step.wrong is not None:
            with pytest.raises(HorovodRequestError):
                hvd.synchronize(self.handle)
            return
        results = hvd.synchronize(self.handle)
        if self.step.kind == "alltoall":
            results, received = results
            rows = model.received_rows(self.step, *self._all_values())
            assert received.tolist() == [len(part) for part in rows]
        results = results if isinstance(results, (list, tuple)) else [results]
        wanted = model.expected(self.step, self.place)
        assert len(results) == len(wanted)
        for result, want, tensor in zip(results, wanted, self.step.tensors):
            assert_equal(result, want, tensor.dtype)
        if not self.step.in_place:
            assert all(torch.equal(a, b) for a, b in zip(self.inputs, self.copies))

    def _all_values(self):
        (tensor,) = self.step.tensors
        values = [model.value_of(tensor, i) for i in range(len(self.step.members))]
        return values, self.place


def run_program(program, sets, seed):
    mine = [step for step in program.steps if hvd.rank() in step.members]
    order = random.Random(f"{seed}-{hvd.rank()}")
    order.shuffle(mine)
    submitted = [Submitted(step, sets[step.members]) for step in mine]
    order.shuffle(submitted)
    for operation in submitted:
        operation.check()
    for step in program.ordered:
        if hvd.rank() in step.members:
            Submitted(step, sets[step.members]).check()
    if program.joins_after is not None:
        run_joins(program)


def run_joins(program):
    """Joined ranks contribute nothing; averages still divide by the number of all ranks."""
    size = hvd.size()
    count = program.joins_after[hvd.rank()]
    for i, step in enumerate(program.last[:count]):
        present = [r for r in range(size) if program.joins_after[r] > i]
        if step.reduction == hvd.Adasum and len(present) < size:
            step = step._replace(reduction=hvd.Sum)
        tensors = [to_torch(model.value_of(t, hvd.rank()), t.dtype) for t in step.tensors]
        results = hvd.grouped_allreduce(
            tensors,
            name=step.name,
            op=step.reduction,
            prescale_factor=step.prescale,
            postscale_factor=step.postscale,
        )
        for result, tensor in zip(results, step.tensors):
            values = [model.value_of(tensor, r) for r in present]
            assert_equal(result, model.reduced(step, values, size), tensor.dtype)
    last = hvd.join()
    assert program.joins_after[last] == max(program.joins_after)


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, CHUNK))
def test_programs_give_what_the_model_gives(first, sets):
    for seed in range(first, min(first + CHUNK, FIRST + COUNT)):
        program = model.random_program(seed, hvd.size(), list(sets))
        try:
            run_program(program, sets, seed)
        except BaseException:
            print(f"seed {seed} on {hvd.size()} ranks: {program}")
            raise
