"""Which CUDA tensors the runtime takes where they are, and on a host that stands in for a device
what becomes of them; tests/gpu has the same on real ones."""

import contextlib
from types import SimpleNamespace

import pytest
import torch
import torch.utils.dlpack

import horovod.torch as hvd
from horovod import _ffi
from horovod._ffi import _memory
from horovod.common.exceptions import HorovodRequestError
from horovod.torch import _devices


@pytest.fixture
def runtime_takes_them(monkeypatch):
    monkeypatch.setattr(_devices, "_device", None)
    monkeypatch.setattr(_ffi, "takes_device", lambda device: True)


@pytest.fixture(autouse=True)
def captures(monkeypatch):
    """Whether the current stream is captured; a torch without CUDA can't be asked."""
    answer = SimpleNamespace(now=False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: answer.now)
    return answer


class _Event:
    cuda_event = 0

    def record(self):
        pass


@pytest.fixture
def copies(monkeypatch):
    """The host's memory is the device's; the list of the sizes of what had to be copied."""
    sizes = []
    as_dlpack = _ffi.as_dlpack

    def noted(address, size, device):
        sizes.append(size)
        return as_dlpack(address, size, device)

    stream = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(_devices, "_are_reachable", lambda tensors: True)
    monkeypatch.setattr(_devices, "_device", _ffi.HOST)
    monkeypatch.setattr(_ffi, "as_dlpack", noted)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    return sizes


def on_device(index, dtype=torch.float32, shape=(2,), is_conj=False, is_neg=False):
    return SimpleNamespace(
        is_cuda=True,
        device=SimpleNamespace(index=index),
        dtype=dtype,
        shape=shape,
        is_conj=lambda: is_conj,
        is_neg=lambda: is_neg,
    )


def takes(tensors, op=hvd.Sum, prescale=1.0, postscale=1.0):
    return _devices.takes(tensors, dict(reduction=op, prescale=prescale, postscale=postscale))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_floats(runtime_takes_them, dtype):
    tensor = on_device(0, dtype)
    for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
        assert takes([tensor], op)
    assert takes([tensor], hvd.Sum, 0.5) and takes([tensor], hvd.Average, 1.0, 2.0)
    assert not takes([tensor], hvd.Max, 0.5) and not takes([tensor], hvd.Product, 1.0, 2.0)
    assert not takes([tensor], hvd.Adasum)
    assert _devices.takes([tensor], {})


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.bool])
def test_integers_are_not_scaled(runtime_takes_them, dtype):
    tensor = on_device(0, dtype)
    for op in (hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
        assert takes([tensor], op)
    assert not takes([tensor], hvd.Average) and not takes([tensor], hvd.Sum, 2.0)
    assert not takes([on_device(0), tensor], hvd.Average), "a group goes one way"


def test_complex_ones_are_reduced_as_their_parts(runtime_takes_them):
    tensor = on_device(0, torch.complex64)
    for op in (hvd.Sum, hvd.Average):
        assert takes([tensor, on_device(0)], op)
    assert takes([tensor], hvd.Sum, 0.5) and _devices.takes([tensor], {})
    assert not takes([tensor], hvd.Max) and not takes([tensor], hvd.Adasum)
    assert not takes([on_device(0, torch.complex64, shape=())]), "a scalar's parts would be rows"


def test_what_is_yet_to_be_conjugated_or_negated_is_not_taken(runtime_takes_them):
    assert not takes([on_device(0, torch.complex64, is_conj=True)])
    assert not takes([on_device(0), on_device(0, is_neg=True)])


def test_the_first_device_is_the_one(runtime_takes_them):
    assert takes([on_device(1)])
    assert not takes([on_device(0)]) and not takes([on_device(1), on_device(0)])
    assert takes([on_device(1), on_device(1)])


def test_tensors_elsewhere_are_not_taken(runtime_takes_them):
    assert not takes([torch.ones(1)]) and not takes([on_device(0), torch.ones(1)])
    assert not _devices.takes([torch.ones(1)], {})


def test_without_a_driver_none_are_taken(monkeypatch):
    monkeypatch.setattr(_ffi, "takes_device", lambda device: False)
    assert not takes([on_device(0)])


def test_captured_stream_is_refused(runtime_takes_them, captures):
    captures.now = True
    with pytest.raises(RuntimeError, match=r"can't be captured in a CUDA graph"):
        takes([on_device(0)])
    assert not takes([torch.ones(1)]), "tensors of the host are not part of a graph"


def test_what_the_library_says():
    assert _ffi.takes_device(0) == bool(_ffi.built("cuda"))
    assert not hvd.nccl_built() or hvd.cuda_built()


def rows_of(rank, rows, dtype=torch.float32):
    return torch.arange(rows * 3).reshape(rows, 3).to(dtype) + 10 * rank


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.bool, torch.complex64])
def test_allgather_of_as_many_rows(copies, dtype):
    tensors = [rows_of(rank, 4, dtype) for rank in range(hvd.size())]
    mine = tensors[hvd.rank()]
    assert torch.equal(hvd.allgather(mine), torch.cat(tensors))
    assert torch.equal(mine, rows_of(hvd.rank(), 4, dtype)) and not copies


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.bool, torch.complex64])
def test_allgather_of_differing_rows(copies, dtype):
    tensors = [rows_of(rank, rank, dtype) for rank in range(hvd.size())]
    expected = torch.cat(tensors)
    for _ in range(2):
        assert torch.equal(hvd.allgather(tensors[hvd.rank()]), expected)
    a, b = hvd.grouped_allgather([tensors[hvd.rank()], rows_of(hvd.rank(), 2)])
    assert torch.equal(a, expected) and b.shape == (2 * hvd.size(), 3)
    # Whose guess was right by chance, or nothing came.
    needed = expected.numel() > 0 and hvd.rank() * hvd.size() != expected.shape[0]
    assert copies == [expected.numel() * expected.element_size()] * 3 * needed


def test_allgather_without_room(copies, monkeypatch):
    monkeypatch.setattr(_devices, "room", lambda tensor, rows: None)
    tensors = [rows_of(rank, 2) for rank in range(hvd.size())]
    assert torch.equal(hvd.allgather(tensors[hvd.rank()]), torch.cat(tensors))
    assert copies == [hvd.size() * 2 * 3 * 4]


def test_room_is_not_there():
    def new_empty(shape):
        raise RuntimeError("CUDA out of memory")

    tensor = SimpleNamespace(detach=lambda: SimpleNamespace(new_empty=new_empty), shape=(1, 2))
    assert _devices.room(tensor, 5) is None
    room = _devices.room(torch.ones(1, 2, dtype=torch.int8, requires_grad=False), 5)
    assert room.shape == (5, 2) and room.dtype == torch.int8


def test_alltoall_evenly(copies):
    mine = rows_of(hvd.rank(), 2 * hvd.size())
    everything = torch.stack([rows_of(r, 2 * hvd.size()) for r in range(hvd.size())])
    received = everything[:, 2 * hvd.rank() : 2 * hvd.rank() + 2].reshape(-1, 3)
    assert torch.equal(hvd.alltoall(mine), received)
    both, splits = hvd.alltoall(mine, splits=[2] * hvd.size())
    assert torch.equal(both, received) and splits.tolist() == [2] * hvd.size() and not copies


def test_alltoall_with_splits(copies):
    # r rows to rank 0, r + 1 to rank 1, ..., and one too many.
    rank, size = hvd.rank(), hvd.size()
    splits = [rank + to for to in range(size)]
    mine = rows_of(rank, sum(splits) + 1)
    output, received = hvd.alltoall(mine, splits=splits)
    expected = [rows_of(r, size * r + 20)[sum(r + to for to in range(rank)) :][: r + rank] for r in range(size)]
    assert received.tolist() == [r + rank for r in range(size)]
    assert torch.equal(output, torch.cat(expected))
    assert len(copies) == (output.numel() > 0 and size > 1)


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum, hvd.Max])
def test_reducescatter(copies, op):
    rank, size = hvd.rank(), hvd.size()
    rows = 2 * size + 1
    reduced = hvd.reducescatter(rows_of(rank, rows), op=op)
    everything = torch.stack([rows_of(r, rows) for r in range(size)])
    reductions = {hvd.Average: torch.mean, hvd.Sum: torch.sum, hvd.Max: torch.amax}
    whole = reductions[op](everything, 0)
    first = 2 * rank + (rank > 0)
    assert torch.allclose(reduced, whole[first : first + 2 + (rank == 0)])
    few = hvd.grouped_reducescatter([torch.ones(1, 3), torch.ones(size)], op=hvd.Sum)
    assert few[0].shape == ((1, 3) if rank == 0 else (0, 3)) and few[1].tolist() == [size]
    assert not copies


def test_gradients(copies):
    rank, size = hvd.rank(), hvd.size()
    x = rows_of(rank, rank + 1).requires_grad_()
    (hvd.allgather(x) * 2).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))
    y = rows_of(rank, size).requires_grad_()
    output, _ = hvd.alltoall(y, splits=[1] * size)
    (output * (rank + 1)).sum().backward()
    assert y.grad[:, 0].tolist() == [r + 1 for r in range(size)]
    z = rows_of(rank, size).requires_grad_()
    hvd.reducescatter(z, op=hvd.Sum).sum().backward()
    assert torch.equal(z.grad, torch.full_like(z, size))


def test_ranks_that_differ_continue(copies):
    if hvd.size() == 1:
        pytest.skip("one rank can't differ")
    with pytest.raises(HorovodRequestError, match="Mismatched allgather"):
        hvd.allgather(torch.ones(2, 3 + hvd.rank()))
    assert hvd.allgather(torch.ones(1)).shape == (hvd.size(),)


def test_memory_of_the_runtime_is_seen_without_a_copy():
    data = bytearray(b"12345678")
    view = torch.frombuffer(data, dtype=torch.uint8)
    before = set(_memory._in_use)
    seen = torch.utils.dlpack.from_dlpack(_ffi.as_dlpack(view.data_ptr(), len(data), _ffi.HOST))
    data[2:4] = b"xy"
    assert bytes(seen.tolist()) == b"12xy5678" and len(set(_memory._in_use) - before) == 1
    del seen
    assert set(_memory._in_use) == before
