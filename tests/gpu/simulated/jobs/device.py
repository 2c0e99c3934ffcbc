"""A program that sees the simulated GPU through torch: device.py WHAT runs the function of that name."""

import ctypes
import io
import os
import signal
import sys
import threading

import torch

cuda = torch.device("cuda")
driver = ctypes.CDLL("libcuda.so.1")
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Gate:
    """A kernel on the current stream that ends on request, so that the work after it is certainly not done."""

    def __init__(self):
        self._opened = threading.Event()
        self._kernel = Callback(lambda _: self._opened.wait())
        torch.cuda.current_stream().query()  # now the driver is in use, with a context
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        assert driver.cuLaunchHostFunc(stream, self._kernel, None) == 0

    def open(self):
        self._opened.set()


def raises(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def ordering():
    """A wait that is missing shows, and one that is there helps."""
    side, x = torch.cuda.Stream(), torch.zeros(1000, device=cuda)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        gate = Gate()
        x += 1
        product = x * 2
    early = x.clone()
    torch.cuda.current_stream().synchronize()
    assert (early == 0).all()
    torch.cuda.current_stream().wait_stream(side)
    late = product + x
    gate.open()
    assert (late == 3).all()


def events():
    gate = Gate()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert first.query() and first.cuda_event == 0  # as never recorded
    first.record()
    last.record()
    assert first.cuda_event != 0 and not first.query() and not torch.cuda.current_stream().query()
    gate.open()
    last.synchronize()
    assert last.query() and first.elapsed_time(last) >= 0
    torch.cuda.synchronize()


def host_copies():
    """Pinned memory is read and written when the device comes to it, other memory before the call returns. All copies are counted."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.simulatedGpuBusCopies.restype = ctypes.c_longlong
    before = driver.simulatedGpuBusCopies()
    ones, pinned = torch.ones(1000, device=cuda), torch.zeros(1000, pin_memory=True)
    assert pinned.is_pinned() and not torch.zeros(1).is_pinned()
    gate = Gate()
    pinned.copy_(ones, non_blocking=True)
    assert (pinned == 0).all()
    gate.open()
    torch.cuda.synchronize()
    assert (pinned == 1).all()
    plain, gate = torch.ones(1000), Gate()
    from_pinned, from_plain = pinned.to(cuda, non_blocking=True), plain.to(cuda, non_blocking=True)
    pinned.fill_(2)
    plain.fill_(2)
    gate.open()
    assert driver.simulatedGpuBusCopies() - before == 3  # one to the host, two to the device
    assert (from_pinned == 2).all() and (from_plain == 1).all()


def memory():
    """A stream's memory is given away at once, to the same stream; another one's after it is done."""
    block = torch.ones(1 << 20, device=cuda)
    place, before = block.data_ptr(), torch.cuda.memory_allocated()
    assert before >= 4 << 20
    del block
    assert torch.cuda.memory_allocated() <= before - (4 << 20)
    block = torch.empty(1 << 20, device=cuda)
    assert block.data_ptr() == place
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        gate = Gate()
        block.record_stream(side)
    del block
    other = torch.empty(1 << 20, device=cuda)
    assert other.data_ptr() != place
    gate.open()
    side.synchronize()
    again = torch.empty(1 << 20, device=cuda)
    assert again.data_ptr() == place
    del other, again
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


def out_of_memory():
    total = torch.cuda.mem_get_info()[1]
    raises(
        torch.cuda.OutOfMemoryError,
        "CUDA out of memory",
        lambda: torch.empty(total + 1, dtype=torch.uint8, device=cuda),
    )
    most = [torch.empty(total // 2, dtype=torch.uint8, device=cuda) for _ in range(2)]
    raises(torch.OutOfMemoryError, "CUDA out of memory", lambda: torch.ones(1 << 20, device=cuda))
    del most
    assert torch.ones(1 << 20, device=cuda).sum().item() == 1 << 20


def host_can_not_touch():
    place = torch.ones(10, device=cuda).data_ptr()
    child = os.fork()
    if child == 0:
        ctypes.string_at(place, 1)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV


def random():
    torch.manual_seed(3)
    state, first = torch.cuda.get_rng_state(), torch.rand(10, device=cuda)
    of_host = torch.rand(10)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(10), of_host) and torch.equal(torch.rand(10, device=cuda), first)
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(10, device=cuda), first)


def fork():
    torch.ones(1, device=cuda)
    child = os.fork()
    if child == 0:
        raises(RuntimeError, "Cannot re-initialize CUDA in forked subprocess", lambda: torch.ones(1, device=cuda))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def two_devices():
    assert torch.cuda.device_count() == 2
    first, second = (
        torch.ones(5, device="cuda:0", requires_grad=True),
        torch.ones(5, device="cuda:1", requires_grad=True),
    )
    ((first * 2).to("cuda:1") * second).sum().backward()
    assert first.grad.device.index == 0 and second.grad.device.index == 1
    assert (first.grad == 2).all() and (second.grad == 2).all()
    with torch.cuda.device(1):
        assert torch.ones(1, device=cuda).device.index == 1
        event = torch.cuda.Event()
        gate = Gate()
        event.record()
    event.wait(torch.cuda.current_stream(0))
    late = first.detach() + 1
    assert not event.query() and not torch.cuda.current_stream(0).query()
    gate.open()
    assert (late == 2).all()


def exchanges():
    """DLPack both ways, and the questions of CUDA graphs."""
    x = torch.arange(5, device=cuda)
    same = torch.from_dlpack(x)
    assert same.data_ptr() == x.data_ptr() and same.is_cuda
    side = torch.cuda.Stream()
    capsule = x.__dlpack__(stream=side.cuda_stream)
    assert torch.equal(torch.utils.dlpack.from_dlpack(capsule), x)
    assert not torch.cuda.is_current_stream_capturing()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        assert torch.cuda.is_current_stream_capturing()
    assert not torch.cuda.is_current_stream_capturing()


def files():
    file = io.BytesIO()
    torch.save(torch.arange(5, device=cuda), file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded.is_cuda and torch.equal(loaded, torch.arange(5, device=cuda))


def operation_without_a_kernel():
    cell = torch.nn.LSTM(8, 8).to(cuda)
    raises(NotImplementedError, "only the CPU's kernels", lambda: cell(torch.ones(3, 2, 8, device=cuda)))
    assert torch.ones(3, device=cuda).sum().item() == 3


def hold():
    """Holds memory until it is killed."""
    kept = torch.empty(64 << 20, dtype=torch.uint8, device=cuda)
    print("holds", kept.numel(), flush=True)
    signal.pause()


globals()[sys.argv[1]]()
