"""The way of CUDA tensors to host memory for a commit, and back for a restore, with tensors that stand in for those of a GPU. Their
asynchronous copies are made as late as possible, when something waits for them, so that one that is not awaited is missing in the
result; and as early as possible, so that a buffer that is still in use is seen to be overwritten.
"""

import contextlib
import ctypes

import pytest
import torch

from horovod import _ffi
from horovod.torch import _host_copies
from horovod.torch._loading import TREES

_BUFFER = 1 << 12


class _Gpu:
    """A device with one stream."""

    def __init__(self, is_lazy=True):
        self.is_lazy = is_lazy
        self.queue = []
        self.copies = 0

    def copy(self, target, source):
        self.queue.append((target, source))
        if not self.is_lazy:
            self.run(self.copies + 1)

    def run(self, until):
        while len(self.queue) > 0 and self.copies < until:
            target, source = self.queue.pop(0)
            target.copy_(source)
            self.copies += 1


_gpu = _Gpu()


def plain(tensors):
    return [tensor.as_subclass(torch.Tensor) for tensor in tensors]


class _OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True
    is_cpu = False

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.Tensor.copy_:
            target, source = plain(args)
            if (kwargs or {}).get("non_blocking"):
                _gpu.copy(target, source)
            else:
                target.copy_(source)
            return args[0]
        return super().__torch_function__(function, types, args, kwargs or {})


class _Event:
    def record(self):
        self._until = _gpu.copies + len(_gpu.queue)

    def synchronize(self):
        _gpu.run(self._until)


def on_gpu(tensor):
    return tensor.as_subclass(_OnGpu)


@pytest.fixture(autouse=True, params=["lazy", "eager"])
def gpu(monkeypatch, request):
    _gpu.__init__(request.param == "lazy")
    buffers = [torch.full((_BUFFER,), 255, dtype=torch.uint8) for _ in range(3)]
    monkeypatch.setattr(_host_copies, "_BUFFER_BYTES", _BUFFER)
    monkeypatch.setattr(_host_copies, "_buffers", lambda: buffers)
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    return _gpu


def stretches(tensors):
    kinds = [TREES.adapter.kind(tensor) for tensor in tensors]
    return TREES.stretches(tensors, kinds)


def as_stored(tensors):
    """The bytes of a commit with these tensors: each begins at a multiple of 64."""
    result = bytearray()
    for tensor in tensors:
        plain = tensor.as_subclass(torch.Tensor).contiguous().reshape(-1)
        result += bytes(plain.view(torch.uint8).tolist())
        result += bytes(-len(result) % 64)
    return bytes(result)


def stored(arriving):
    result = bytearray()
    for addresses, sizes in arriving:
        for address, size in zip(addresses, sizes):
            result += ctypes.string_at(address, size)
            result += bytes(-len(result) % 64)
    return bytes(result)


def tensors_of(sizes):
    return [on_gpu(torch.arange(size, dtype=torch.float32) + i) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    "sizes", [[1], [1024], [1023, 1], [1024, 1], [1025], [5000], [3, 5000, 7, 2048, 1], [0, 3, 0]], ids=str
)
def test_sizes_around_the_buffer(sizes, gpu):
    tensors = tensors_of(sizes)
    assert stored(stretches(tensors)) == as_stored(tensors)
    assert gpu.queue == []


def test_tensors_of_all_places_and_layouts():
    tensors = [
        torch.arange(5),
        on_gpu(torch.arange(2000, dtype=torch.float64)),
        on_gpu(torch.arange(12.0).reshape(3, 4).t()),
        torch.tensor(7.0),
        on_gpu(torch.tensor(True)),
        on_gpu(torch.arange(6).to(torch.bfloat16)),
        torch.arange(6.0).reshape(2, 3).t(),
        on_gpu(torch.tensor([1 + 2j])),
    ]
    expected = as_stored(tensors[:-1])
    got = stored(stretches(tensors))
    assert got[: len(expected)] == expected
    assert ctypes.c_float.from_buffer_copy(got, len(expected) + 4).value == 2


def test_class_with_operations_of_its_own_is_copied_by_them(gpu):
    class Wrapped(_OnGpu):
        @classmethod
        def __torch_dispatch__(cls, *arguments):
            raise NotImplementedError

    wrapped = torch.Tensor._make_subclass(Wrapped, torch.arange(3.0))
    copied = []
    arriving = _host_copies.stretches(
        [*tensors_of([1]), wrapped], lambda tensor: copied.append(tensor) or torch.ones(3)
    )
    assert [sizes for _, sizes in arriving] == [[4, 12]]
    assert len(copied) == 1 and copied[0] is wrapped


def test_copies_overlap_with_the_callers_work(gpu):
    arriving = stretches(tensors_of([4 * 1024]))
    queued = []
    for addresses, _ in arriving:
        assert len(addresses) == 1
        queued.append(len(gpu.queue))
    if gpu.is_lazy:
        assert queued == [2, 2, 1, 0], "the next copies are under way, and nothing has waited for them"


def test_caller_gives_up_no_copy_is_pending(gpu):
    arriving = stretches(tensors_of([4 * 1024]))
    next(arriving)
    arriving.close()
    assert gpu.queue == []
    assert stored(stretches(tensors_of([1]))) == as_stored(tensors_of([1]))


def test_failing_tensor_no_copy_is_pending(gpu, monkeypatch):
    def no_memory(tensor):
        raise MemoryError

    tensors = [*tensors_of([3]), torch.arange(6.0).reshape(2, 3).t()]
    with pytest.raises(MemoryError):
        list(_host_copies.stretches(tensors, no_memory))
    assert gpu.queue == []


def targets_of(sources):
    return [on_gpu(torch.zeros_like(source)) for source in sources]


@pytest.mark.parametrize(
    "sizes", [[1], [1024], [1023, 1], [1024, 1], [1025], [20000], [3, 5000, 7, 2048, 1], [0, 3, 0]], ids=str
)
def test_loads_sizes_around_the_buffer(sizes, gpu):
    sources = plain(tensors_of(sizes))
    targets = targets_of(sources)
    assert _host_copies.load(list(zip(targets, sources))) == []
    assert gpu.queue == [], "a copy was not awaited"
    for target, source in zip(plain(targets), sources):
        assert torch.equal(target, source)


def test_loads_only_what_lies_alike(gpu):
    sources = [torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(3, 2).t(), torch.arange(3), torch.ones(2)]
    targets = [on_gpu(torch.zeros(3, 2).t()), on_gpu(torch.zeros(2, 3)), on_gpu(torch.zeros(3)), torch.zeros(2)]
    pairs = list(zip(targets, sources))
    left = _host_copies.load([*pairs, (on_gpu(torch.zeros(2)), torch.ones(2))])
    assert [target for target, _ in left] == targets and gpu.copies == 1


def test_failing_load_no_copy_is_pending(gpu, monkeypatch):
    sources = plain(tensors_of([3000, 3]))
    targets = targets_of(sources)

    def full(*arguments):
        if arguments[-1] == [952 * 4, 3 * 4]:
            raise MemoryError

    monkeypatch.setattr(_ffi, "copy", full)
    with pytest.raises(MemoryError):
        _host_copies.load(list(zip(targets, sources)))
    assert gpu.copies == 2 and gpu.queue == []


def test_copied_into_tensors_of_the_gpu(gpu):
    saved = {"a": torch.arange(5000.0), "b": [torch.arange(6.0).reshape(2, 3), 7]}
    own = {"a": on_gpu(torch.zeros(5000)), "b": [on_gpu(torch.zeros(3, 2).t()), 1]}
    copied = TREES.copied(saved, own)
    assert copied["a"] is own["a"] and copied["b"][0] is own["b"][0] and copied["b"][1] == 7
    assert torch.equal(*plain([copied["a"], saved["a"]])) and torch.equal(*plain([copied["b"][0], saved["b"][0]]))


def test_no_page_locked_memory(gpu, monkeypatch):
    monkeypatch.setattr(_host_copies, "_buffers", lambda: None)
    tensors = [*tensors_of([3, 5000]), torch.arange(3)]
    assert stored(stretches(tensors)) == as_stored(tensors)
    pairs = list(zip(targets_of(tensors[:1]), plain(tensors)))
    assert _host_copies.load(pairs) == pairs


def test_refused_memory_is_not_asked_for_again(monkeypatch):
    asked = []

    def refuse(*args, **kwargs):
        asked.append(kwargs["pin_memory"])
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.undo()
    _host_copies._buffers.cache_clear()
    monkeypatch.setattr(torch, "empty", refuse)
    try:
        assert _host_copies._buffers() is None
        assert _host_copies._buffers() is None
    finally:
        _host_copies._buffers.cache_clear()
    assert asked == [True]


def test_tensors_of_the_host_stay_where_they_are():
    tensors = [torch.arange(3), torch.arange(4)]
    ((addresses, sizes),) = stretches(tensors)
    assert addresses == [tensor.data_ptr() for tensor in tensors]
    assert sizes == [24, 32]
