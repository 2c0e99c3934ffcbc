"""Calls of libhvd_jax.so's handler for CUDA as XLA makes them: a call frame, and the part of XLA's FFI that the handler uses, on a stream of
torch. The layouts are those of frameworks/jax/xla_ffi_abi.h."""

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p, pointer

import torch

from horovod import _ffi

TYPES = {
    torch.bool: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.uint8: 6, torch.float16: 10, torch.float32: 11,
    torch.float64: 12, torch.bfloat16: 16,
}  # fmt: skip
INT64, FLOAT64 = 5, 12
SCALAR, STRING = 3, 4


def structure(name, *fields):
    head = [("struct_size", c_size_t), ("extension_start", c_void_p)]
    return type(name, (Structure,), {"_fields_": head + list(fields)})


ErrorArgs = structure("ErrorArgs", ("message", c_char_p), ("code", c_int))
StreamArgs = structure("StreamArgs", ("context", c_void_p), ("stream", c_void_p))
Version = structure("Version", ("major", c_int), ("minor", c_int))
ErrorCreate, StreamGet = CFUNCTYPE(c_void_p, POINTER(ErrorArgs)), CFUNCTYPE(c_void_p, POINTER(StreamArgs))
Api = structure(
    "Api", ("version", Version), ("internal", c_void_p), ("error_create", ErrorCreate), ("error_get_message", c_void_p),
    ("error_destroy", c_void_p), ("handler_register", c_void_p), ("stream_get", StreamGet),
)  # fmt: skip
Buffer = structure("Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))
Buffers = structure("Buffers", ("size", c_int64), ("kinds", c_void_p), ("buffers", POINTER(POINTER(Buffer))))
Attributes = structure(
    "Attributes",
    ("size", c_int64),
    ("kinds", POINTER(c_int)),
    ("names", POINTER(c_void_p)),
    ("values", POINTER(c_void_p)),
)
Frame = structure(
    "Frame", ("api", POINTER(Api)), ("context", c_void_p), ("stage", c_int), ("arguments", Buffers), ("results", Buffers),
    ("attributes", Attributes),
)  # fmt: skip
Metadata = structure("Metadata", ("version", Version), ("traits", c_uint32))
MetadataExtension = type(
    "MetadataExtension",
    (Structure,),
    {"_fields_": [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata))]},
)


class Span(Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


class Scalar(Structure):
    _fields_ = [("dtype", c_int), ("value", c_void_p)]


EXECUTE = 3
OPTIONS = {
    "op": _ffi.ALLREDUCE, "is_group": 0, "reduction": _ffi.SUM, "prescale": 1.0, "postscale": 1.0, "root_rank": 0, "process_set": 0,
}  # fmt: skip


class CallError(Exception):
    """What the handler has answered."""


def load():
    library = ctypes.CDLL(os.path.join(os.path.dirname(_ffi.library_path()), "libhvd_jax.so"))
    library.hvd_jax_use.argtypes, library.hvd_jax_use.restype = [c_char_p], c_char_p
    problem = library.hvd_jax_use(_ffi.library_path().encode())
    assert not problem, problem
    library.hvd_jax_collective_on_cuda.argtypes = [POINTER(Frame)]
    library.hvd_jax_collective_on_cuda.restype = c_void_p
    return library


_library = load()


class Call:
    """One call. `before` is run when the handler asks for the stream."""

    def __init__(self, name, inputs, results, stream, before=lambda: None, **options):
        self._kept, self._before, self._stream, self._message = [], before, stream, ""
        self._byte = torch.zeros(1, dtype=torch.uint8, device=inputs[0].device)
        api = Api(ctypes.sizeof(Api), None, Version(ctypes.sizeof(Version), None, 0, 0), None)
        api.error_create, api.stream_get = ErrorCreate(self._make_error), StreamGet(self._give_stream)
        self._frame = Frame(ctypes.sizeof(Frame), None, pointer(self._keep(api)), None, EXECUTE)
        self._frame.arguments = self._buffers([*inputs, self._byte])
        self._frame.results = self._buffers([*results, self._byte])
        self._frame.attributes = self._attributes({**OPTIONS, **options, "name": name})

    def run(self):
        """Raises CallError for an error of the handler."""
        if _library.hvd_jax_collective_on_cuda(ctypes.byref(self._frame)) is not None:
            raise CallError(self._message)

    def traits(self):
        """The handler's answer when XLA registers it."""
        metadata = self._keep(Metadata(ctypes.sizeof(Metadata), None, Version(ctypes.sizeof(Version), None, 0, 0), 0))
        extension = self._keep(MetadataExtension(ctypes.sizeof(MetadataExtension), 1, None, pointer(metadata)))
        self._frame.extension_start = ctypes.addressof(extension)
        self.run()
        self._frame.extension_start = None
        return metadata.traits

    def _keep(self, value):
        self._kept.append(value)
        return value

    def _make_error(self, args):
        self._message = args.contents.message.decode()
        return 1

    def _give_stream(self, args):
        args.contents.stream = self._stream.cuda_stream
        self._before()
        return None

    def _buffers(self, tensors):
        made = [
            self._keep(
                Buffer(
                    ctypes.sizeof(Buffer), None, TYPES[tensor.dtype], tensor.data_ptr() or None, tensor.dim(),
                    (c_int64 * max(1, tensor.dim()))(*tensor.shape),
                )
            )
            for tensor in tensors
        ]  # fmt: skip
        array = self._keep((POINTER(Buffer) * len(made))(*map(pointer, made)))
        return Buffers(ctypes.sizeof(Buffers), None, len(made), None, array)

    def _attributes(self, options):
        kinds, names, values = [], [], []
        for name, value in options.items():
            kinds.append(STRING if isinstance(value, str) else SCALAR)
            names.append(ctypes.addressof(self._keep(Span(name.encode(), len(name)))))
            if isinstance(value, str):
                own = Span(value.encode(), len(value))
            else:
                number = self._keep((ctypes.c_double if isinstance(value, float) else c_int64)(value))
                own = Scalar(FLOAT64 if isinstance(value, float) else INT64, ctypes.addressof(number))
            values.append(ctypes.addressof(self._keep(own)))
        count = len(kinds)
        arrays = (c_int * count)(*kinds), (c_void_p * count)(*names), (c_void_p * count)(*values)
        return Attributes(ctypes.sizeof(Attributes), None, count, *map(self._keep, arrays))
