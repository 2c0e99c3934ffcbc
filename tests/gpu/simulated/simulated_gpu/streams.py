"""``torch.cuda``: streams and events, which are torch's generic ones with the names that CUDA's have."""

import ctypes

import torch

import simulated_gpu
from simulated_gpu.devices import index_of

LEGACY = 1  # the driver's name of the default stream, beside 0


def _device(index):
    return torch.device("cuda", index)


class Stream(torch.Stream):
    def __new__(cls, device=None, priority=0, **named):
        if "stream_id" in named:
            return super().__new__(cls, **named)
        return super().__new__(cls, _device(index_of(device)), priority=priority)

    @property
    def cuda_stream(self):
        return self.stream_id

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.cuda_stream)

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        event.wait(self)

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def __enter__(self):
        self._entered = [*getattr(self, "_entered", []), StreamContext(self)]
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *error):
        self._entered.pop().__exit__(*error)

    def __eq__(self, other):
        return isinstance(other, torch.Stream) and (self.stream_id, self.device) == (other.stream_id, other.device)

    def __hash__(self):
        return hash((self.stream_id, self.device))

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"

    def __cuda_stream__(self):
        return (0, self.cuda_stream)


class ExternalStream(Stream):
    def __new__(cls, stream_ptr, device=None, **named):
        return _with_id(0 if stream_ptr == LEGACY else stream_ptr, index_of(device), cls)


class Event(torch.Event):
    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
        return super().__new__(cls, "cuda", enable_timing=enable_timing, blocking=blocking)

    @property
    def cuda_event(self):
        return self.event_id

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.cuda_event)

    def record(self, stream=None):
        super().record(current_stream() if stream is None else stream)

    def wait(self, stream=None):
        super().wait(current_stream() if stream is None else stream)

    # torch's own takes no subclass.
    def elapsed_time(self, end_event):
        milliseconds = ctypes.c_float()
        result = simulated_gpu.library().cuEventElapsedTime(ctypes.byref(milliseconds), self, end_event)
        if result != 0:
            raise RuntimeError(f"CUDA error {result}: both events must have been recorded, with enable_timing=True")
        return milliseconds.value

    def __repr__(self):
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


class StreamContext:
    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is None:
            return
        self._before = current_stream(self.stream.device)
        self._device = torch.cuda.device(self.stream.device)
        self._device.__enter__()
        set_stream(self.stream)

    def __exit__(self, *error):
        if self.stream is None:
            return
        set_stream(self._before)
        self._device.__exit__(*error)


def _with_id(stream_id, index, cls=Stream):
    return torch.Stream.__new__(
        cls, stream_id=stream_id, device_index=index, device_type=torch._C._autograd.DeviceType.CUDA.value
    )


def current_stream(device=None):
    index = index_of(device)
    return _with_id(torch._C._accelerator_getStream(index).stream_id, index)


def default_stream(device=None):
    return _with_id(0, index_of(device))


def set_stream(stream):
    if stream is None:
        return
    device = torch.cuda.current_device()
    torch._C._accelerator_setStream(stream)
    torch.cuda.set_device(device)


def install():
    for each in (Event, ExternalStream, Stream, StreamContext, current_stream, default_stream, set_stream):
        setattr(torch.cuda, each.__name__, each)
    for each in (Event, ExternalStream, Stream):
        setattr(torch.cuda.streams, each.__name__, each)
    torch.cuda.stream = StreamContext
    torch.cuda.get_stream_from_external = ExternalStream
    torch._C._cuda_getCurrentRawStream = lambda index: current_stream(index).cuda_stream
