"""Direct use of CUDA tensors by the runtime; all others are copied to host memory."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import torch
import torch.utils.dlpack

from horovod import _ffi
from horovod.common import ops
from horovod.common.collective_kinds import is_of_parts, reduces_on_devices
from horovod.common.tensors import DTYPES, Kind, as_real
from horovod.torch._host_copies import load as load
from horovod.torch._host_copies import stretches as stretches

_device: Optional[int] = None  # the one that the runtime takes; None: it has taken none yet


def _are_reachable(tensors: Sequence[torch.Tensor]) -> bool:
    """Returns whether all tensors are on the runtime's CUDA device."""
    global _device
    if not all(tensor.is_cuda for tensor in tensors):
        return False
    if _device is None and _ffi.takes_device(tensors[0].device.index):
        _device = tensors[0].device.index
    return all(tensor.device.index == _device for tensor in tensors)


def _refuse_capture(tensors: Sequence[torch.Tensor]) -> None:
    """Raises RuntimeError while the current stream is captured: a graph that is replayed can't ask the other ranks. What follows would
    break the capture with an error that does not name the operation.
    """
    if tensors[0].is_cuda and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "A collective can't be captured in a CUDA graph, because the ranks agree on it each time; capture the computation alone, and "
            "call the collective (or backward() with DistributedOptimizer) outside of torch.cuda.graph()."
        )


def _kind(tensor: torch.Tensor) -> Kind:
    return tuple(tensor.shape), str(tensor.dtype)[len("torch.") :]


def takes(tensors: Sequence[torch.Tensor], fields: Mapping[str, Any]) -> bool:
    """Returns whether :func:`start` supports `tensors`, to be reduced if `fields` say how. The answer is the same on all ranks whose
    tensors have the same dtypes and devices; otherwise the request fails as a mismatch.

    Raises:
      RuntimeError: a CUDA graph is being captured.
    """
    _refuse_capture(tensors)
    if not is_of_parts([_kind(tensor) for tensor in tensors if tensor.dtype.is_complex], fields):
        return False
    if "reduction" in fields:
        are_floats = all(tensor.dtype.is_floating_point or tensor.dtype.is_complex for tensor in tensors)
        if not reduces_on_devices(are_floats, **fields):
            return False
    # Of others, what is in their memory is yet to be conjugated or negated.
    return _are_reachable(tensors) and not any(tensor.is_conj() or tensor.is_neg() for tensor in tensors)


def room(tensor: torch.Tensor, rows: int) -> Optional[torch.Tensor]:
    """Returns memory for a result with the expected number of rows like `tensor`'s. None if there is not enough: the runtime then
    allocates what the result needs.
    """
    try:
        return tensor.detach().new_empty((rows, *tensor.shape[1:]))
    except RuntimeError:
        return None


def start(
    op: int,
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[Optional[torch.Tensor]],
    names: Sequence[str],
    finish: Callable[[int], object],
    process_set: int,
    each: Sequence[Mapping[str, Any]],
) -> int:
    """Submits `tensors` and returns the handle. A result goes to its output, or to memory of the runtime if that is None or has
    another size; `each` has the fields of each request.

    The runtime waits for all work that was submitted to the current stream, so `outputs` may be memory that this stream has just
    released. After synchronize, which returns `finish(handle)`, every stream can use the result.
    """
    sources = [tensor.detach() for tensor in tensors]
    kinds = [as_real(_kind(source)) for source in sources]
    with torch.cuda.device(_device):
        ready = torch.cuda.Event()
        ready.record()
    requests = [
        _ffi.request(
            name,
            op,
            DTYPES[dtype],
            input_address=source.data_ptr(),
            output_address=0 if output is None else output.data_ptr(),
            device=_device,  # type: ignore[arg-type]  # takes() has found one
            ready_event=ready.cuda_event,
            **{"shape": shape, **fields},
        )
        for name, source, (shape, dtype), output, fields in zip(names, sources, kinds, outputs, each)
    ]
    return ops.submit(requests, finish, (sources, outputs, ready), process_set)


def _copy(address: int, like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Returns a copy in torch's memory. It is complete on return: the memory at `address` may be released."""
    size = math.prod(shape) * like.element_size()
    capsule = _ffi.as_dlpack(address, size, _device)  # type: ignore[arg-type]  # takes() has found one
    with torch.cuda.device(_device):
        memory = torch.utils.dlpack.from_dlpack(capsule)
        copy = memory.view(like.dtype).reshape(shape).clone()
        torch.cuda.current_stream().synchronize()
    return copy


def from_result(result: _ffi.Result, like: torch.Tensor, output: Optional[torch.Tensor]) -> torch.Tensor:
    """Returns the result of :func:`start` as a tensor of `like`'s dtype and device: `output`, if the result is there. After that its
    handle may be released.
    """
    shape = result.shape[:-1] if like.dtype.is_complex else result.shape
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=like.dtype, device=like.device)
    if output is not None and output.data_ptr() == result.address:
        return output
    return _copy(result.address, like, shape)
