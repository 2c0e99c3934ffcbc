"""CUDA tensors that the runtime takes where they are; all others go through host memory."""

from typing import Any, Optional, Sequence

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.torch import _tensors

_runtime_takes: Optional[bool] = None  # once it was asked
_device: Optional[int] = None  # the first one; a process has one communicator, so one device


def _can_reduce(tensor: torch.Tensor, op: int, prescale: float, postscale: float) -> bool:
    if op == ops.Adasum:
        return False
    is_scaled = op == ops.Average or prescale != 1.0 or postscale != 1.0
    return not is_scaled or (op in (ops.Average, ops.Sum) and tensor.dtype.is_floating_point)


def _are_reachable(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether all tensors are on the one CUDA device that is the runtime's."""
    global _runtime_takes, _device
    if not all([tensor.is_cuda for tensor in tensors]):
        return False
    if _runtime_takes is None:
        _runtime_takes = _ffi.takes_device_tensors()
    if not _runtime_takes:
        return False
    if _device is None:
        _device = tensors[0].device.index
    return all([tensor.device.index == _device for tensor in tensors])


def take_reduction(
    tensors: Sequence[torch.Tensor], op: int, prescale: float, postscale: float
) -> bool:
    """Whether :func:`submit` can reduce `tensors`. The same on all ranks whose tensors are alike,
    or else they are told that they differ."""
    return all([_can_reduce(tensor, op, prescale, postscale) for tensor in tensors]) and (
        _are_reachable(tensors)
    )


def take_broadcast(tensors: Sequence[torch.Tensor]) -> bool:
    """The same for a broadcast."""
    return _are_reachable(tensors)


def submit(
    kind: int,
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    names: Sequence[str],
    value: Any,
    process_set_id: int,
    **fields: Any,
) -> int:
    """Hands over `tensors`, whose results go to `outputs`, which may be the same. The runtime waits
    for what the current stream was given until now; the result is there for every stream when
    synchronize, which returns `value`, has returned."""
    sources = [tensor.detach() for tensor in tensors]
    with torch.cuda.device(_device):
        ready = torch.cuda.Event()
        ready.record()
    requests = [
        _tensors.request(
            name,
            kind,
            source,
            output,
            device=_device,
            ready_event=ready.cuda_event,
            **fields,
        )
        for name, source, output in zip(names, sources, outputs)
    ]

    def finish(handle: int) -> Any:
        _ffi.release(handle)
        return value

    return ops.submit(requests, finish, (sources, outputs, ready), process_set_id)
