"""Direct use of arrays in CUDA memory by the runtime, whichever library they are of."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Optional

import numpy

from horovod import _ffi
from horovod.common import ops
from horovod.common.collective_kinds import is_of_parts, reduces_on_devices
from horovod.common.exceptions import HorovodInternalError
from horovod.common.tensors import DTYPES, PARTS, as_real, size_of
from horovod.numpy._device_arrays import Library, library_of


def takes(tensors: Sequence[numpy.ndarray], fields: Mapping[str, Any]) -> bool:
    """Returns whether :func:`start` supports these arrays, to be reduced if `fields` say how. The answer is the same on all ranks whose
    arrays have the same dtypes and devices; otherwise the request fails as a mismatch.
    """
    libraries = [library_of(tensor) for tensor in tensors]
    if None in libraries:
        return False
    views = [library.view(tensor) for library, tensor in zip(libraries, tensors)]  # type: ignore[union-attr]
    if not is_of_parts([view.kind for view in views], fields):
        return False
    are_floats = all("float" in as_real(view.kind)[1] for view in views)
    if "reduction" in fields and not reduces_on_devices(are_floats, **fields):
        return False
    devices = {view.device for view in views}
    return len(devices) == 1 and _ffi.takes_device(devices.pop())


def stretches(
    tensors: Sequence[numpy.ndarray], in_one_piece: Callable[[numpy.ndarray], numpy.ndarray]
) -> Optional[Iterator[tuple[list[int], list[int]]]]:
    """Returns None: `in_one_piece` copies them."""
    return None


def load(pairs: Sequence[tuple[numpy.ndarray, numpy.ndarray]]) -> list[tuple[numpy.ndarray, numpy.ndarray]]:
    """Returns all pairs of a target and its source in host memory: each is assigned."""
    return list(pairs)


def room(tensor: numpy.ndarray, rows: int) -> Optional[numpy.ndarray]:
    """Returns memory for a result with the expected number of rows like `tensor`'s. None if there is not enough: the runtime then
    allocates what the result needs.
    """
    library = _known(tensor)
    view = library.view(tensor)
    try:
        made: numpy.ndarray = library.empty(((rows, *view.kind[0][1:]), view.kind[1]), view.device)
        return made
    except (MemoryError, RuntimeError, HorovodInternalError):
        return None


def start(
    op: int,
    tensors: Sequence[numpy.ndarray],
    outputs: Sequence[Optional[numpy.ndarray]],
    names: Sequence[str],
    finish: Callable[[int], object],
    process_set: int,
    each: Sequence[Mapping[str, Any]],
) -> int:
    """Submits `tensors` and returns the handle. A result goes to its output, or to memory of the runtime if that is None or has
    another size; `each` has the fields of each request.

    The runtime waits for all work that was given to the arrays' streams, so `outputs` may be memory that these streams have just
    released. After synchronize, which returns `finish(handle)`, every stream can use the result.
    """
    streams = [_known(tensor).stream(tensor) for tensor in tensors]
    device = _known(tensors[0]).view(tensors[0]).device  # of all
    events = {stream: _ffi.Event(device, stream) for stream in dict.fromkeys(streams)}
    requests = []
    for name, tensor, output, stream, fields in zip(names, tensors, outputs, streams, each):
        view = _known(tensor).view(tensor)
        shape, dtype = as_real(view.kind)
        requests.append(
            _ffi.request(
                name,
                op,
                DTYPES[dtype],
                input_address=view.address,
                output_address=0 if output is None else _known(output).view(output).address,
                device=device,
                ready_event=events[stream].address,
                **{"shape": shape, **fields},
            )
        )
    return ops.submit(requests, finish, (tensors, outputs, events), process_set)


def from_result(result: _ffi.Result, like: numpy.ndarray, output: Optional[numpy.ndarray]) -> numpy.ndarray:
    """Returns the result of :func:`start` as an array of `like`'s library, dtype and device: `output`, if the result is there. After
    that its handle may be released.
    """
    library = _known(like)
    if output is not None and library.view(output).address == result.address and math.prod(result.shape) > 0:
        return output
    view = library.view(like)
    shape = tuple(result.shape[:-1] if view.kind[1] in PARTS else result.shape)
    made: numpy.ndarray = library.empty((shape, view.kind[1]), view.device)
    target = library.view(made)
    size = size_of(target.kind)
    if size:
        _ffi.device_copy(target.device, library.stream(made), _ffi.ON_DEVICE, target.address, result.address, size)
    return made


def _known(tensor: numpy.ndarray) -> Library[Any]:
    library = library_of(tensor)
    assert library is not None  # takes() has looked
    return library
