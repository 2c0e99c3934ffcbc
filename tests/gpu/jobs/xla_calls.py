"""Operations within programs of XLA on the GPU, by call frames that this job makes itself: they need no JAX. Their streams are torch's.

PATH of the environment variable XLA_CALLS_PATH: "nccl", or "host" if the ranks can't use NCCL."""

import ctypes
import itertools
import os
import threading

import torch

from checks import Skipped, check, run_all
from gpu_rank import IS_SIMULATED, bus_copies, device, hvd
from horovod import _ffi
from xla_frame import Call, CallError

PATH = os.environ["XLA_CALLS_PATH"]
COUNT = 1 << 20
counter = itertools.count()
driver = ctypes.CDLL("libcuda.so.1")
Kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def run(op, inputs, shapes, stream=None, before=lambda: None, **options):
    """The results, which are ready on the stream."""
    results = [torch.empty(shape, dtype=own.dtype, device=device) for own, shape in zip(inputs, shapes)]
    name = f"call {next(counter)}"
    Call(name, inputs, results, stream or torch.cuda.current_stream(), before, op=op, **options).run()
    return results


def values(rank, dtype, count=12):
    return (torch.arange(count) % 5 + rank + 1).to(dtype)


def of_all(dtype, count=12):
    return [values(rank, dtype, count) for rank in range(hvd.size())]


def mine(dtype, count=12):
    return values(hvd.rank(), dtype, count).to(device)


def expect(found, wanted):
    assert torch.equal(found.cpu(), wanted.to(found.dtype)), (
        found.flatten()[:5].tolist(),
        wanted.flatten()[:5].tolist(),
    )


@check
def sums_of_all_types():
    for dtype in (
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    ):
        (found,) = run(_ffi.ALLREDUCE, [mine(dtype)], [(12,)])
        expect(found, sum(of_all(torch.float64)))


@check
def other_reductions():
    every = torch.stack(of_all(torch.float32))
    wanted = {
        _ffi.MIN: every.amin(0),
        _ffi.MAX: every.amax(0),
        _ffi.PRODUCT: every.prod(0),
        _ffi.AVERAGE: every.mean(0),
    }
    for reduction, own in wanted.items():
        (found,) = run(_ffi.ALLREDUCE, [mine(torch.float32)], [(12,)], reduction=reduction)
        expect(found, own)
    (found,) = run(_ffi.ALLREDUCE, [mine(torch.float32)], [(12,)], prescale=0.5, postscale=4.0)
    expect(found, every.sum(0) * 2)


@check
def what_nccl_lacks_goes_through_host_memory():
    before = bus_copies()
    (found,) = run(_ffi.ALLREDUCE, [mine(torch.int32)], [(12,)], reduction=_ffi.AVERAGE)
    expect(found, torch.stack(of_all(torch.int64)).sum(0) // hvd.size())
    one = torch.ones(4, device=device) * 3
    (found,) = run(_ffi.ALLREDUCE, [one], [(4,)], reduction=_ffi.ADASUM)  # of equal gradients: their average
    expect(found, torch.full((4,), 3.0))
    assert not IS_SIMULATED or bus_copies() > before


@check
def groups():
    inputs = [mine(torch.float32), mine(torch.bfloat16), mine(torch.float32, 1000)]
    found = run(_ffi.ALLREDUCE, inputs, [own.shape for own in inputs], is_group=1)
    for own, result in zip(inputs, found):
        expect(result, sum(of_all(torch.float32, own.numel())))


@check
def operations_of_rows():
    size, rank = hvd.size(), hvd.rank()
    for dtype in (torch.float32, torch.int64, torch.bool):
        every = of_all(dtype)
        (found,) = run(_ffi.ALLGATHER, [mine(dtype).reshape(6, 2)], [(6 * size, 2)])
        expect(found, torch.cat(every).reshape(-1, 2))
        (found,) = run(_ffi.BROADCAST, [mine(dtype)], [(12,)], root_rank=size - 1)
        expect(found, every[-1])
        (found,) = run(_ffi.ALLTOALL, [mine(dtype)], [(12,)])
        expect(found, torch.cat([own.chunk(size)[rank] for own in every]))
    (found,) = run(
        _ffi.REDUCESCATTER, [mine(torch.float32, 13)], [(13 // size + (rank < 13 % size),)], reduction=_ffi.AVERAGE
    )
    rows = [13 // size + (r < 13 % size) for r in range(size)]
    expect(found, torch.stack(of_all(torch.float32, 13)).mean(0)[sum(rows[:rank]) : sum(rows[: rank + 1])])


@check
def nothing_at_all():
    for op in (_ffi.ALLREDUCE, _ffi.ALLGATHER, _ffi.BROADCAST):
        (found,) = run(op, [torch.empty(0, 3, device=device)], [(0, 3)])
        assert found.shape == (0, 3)


@check
def input_is_ready_on_the_stream():
    """The kernel before those that make the input ends after the handler has asked for the stream."""
    for turn in range(10):
        stream, opened = torch.cuda.Stream(), threading.Event()
        kernel = Kernel(lambda _, opened=opened: opened.wait())
        data, result = torch.zeros(COUNT, device=device), torch.zeros(COUNT, device=device)
        data += 0.0  # CUDA loads a kernel when it is first used, which may wait for all streams
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            assert driver.cuLaunchHostFunc(ctypes.c_void_p(stream.cuda_stream), kernel, None) == 0
            for _ in range(20):
                data += 1.0
        call = Call(f"order {turn}", [data], [result], stream, opened.set, reduction=_ffi.MAX)
        call.run()
        with torch.cuda.stream(stream):
            data.fill_(-1.0)  # as XLA may use the memory again
            after = result + 1.0
            expect(after, torch.full((COUNT,), 21.0))


@check
def no_copy_between_device_and_host():
    if PATH != "nccl":
        raise Skipped("these ranks go through host memory")
    if not IS_SIMULATED:
        raise Skipped("only the simulated driver counts copies")
    inputs = [mine(torch.float32), mine(torch.float32).reshape(6, 2)]
    torch.cuda.synchronize()
    before = bus_copies()
    run(_ffi.ALLREDUCE, inputs, [(12,), (6, 2)], is_group=1, reduction=_ffi.AVERAGE)
    run(_ffi.ALLGATHER, inputs[1:], [(6 * hvd.size(), 2)])
    run(_ffi.BROADCAST, inputs[:1], [(12,)])
    run(_ffi.ALLTOALL, inputs[:1], [(12,)])
    run(_ffi.REDUCESCATTER, inputs[:1], [(12 // hvd.size(),)])
    assert bus_copies() == before


@check
def program_of_another_world_overwrites_nothing():
    """Its results are smaller than those of this world."""
    size = hvd.size()
    memory = torch.full((12 * size,), -1.0, device=device)
    for op, given, rows in ((_ffi.ALLGATHER, 12, 12), (_ffi.REDUCESCATTER, 12 * size, 11)):
        data = mine(torch.float32, given)
        call = Call(f"other {op}", [data], [memory[:rows]], torch.cuda.current_stream(), op=op)
        try:
            call.run()
        except CallError as error:
            assert "equally many rows" in str(error) and "HorovodRequestError" in str(error), error
        else:
            raise AssertionError("it was not refused")
        expect(memory[rows:], torch.full((12 * size - rows,), -1.0))


@check
def mismatch_is_said():
    try:
        run(_ffi.ALLREDUCE, [torch.ones(3 + hvd.rank(), device=device)], [(3 + hvd.rank(),)])
    except CallError as error:
        assert str(error).startswith("HorovodRequestError: Mismatched allreduce"), error
    else:
        raise AssertionError("it was not refused")


@check
def xla_is_not_allowed_to_record_it():
    data = torch.ones(1, device=device)
    assert Call("traits", [data], [data], torch.cuda.current_stream()).traits() == 0


run_all()
