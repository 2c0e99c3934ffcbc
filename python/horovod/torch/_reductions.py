"""Allreduces as they are handed to the runtime: from host memory quickly, from anywhere else through
copies."""

from typing import Any, Dict, List, Sequence

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.torch import _devices, _tensors
from horovod.torch._groups import names_of

# Requests that were made before, so that making one costs a look-up.
_prepared: Dict[tuple, _ffi.Prepared] = {}
_MOST_PREPARED = 4096


def _keep(key: tuple, prepared: _ffi.Prepared) -> None:
    if len(_prepared) >= _MOST_PREPARED:
        _prepared.clear()
    _prepared[key] = prepared


def _prepare(tensor: torch.Tensor, op: int, prescale: float, postscale: float) -> _ffi.Prepared:
    """An allreduce of a tensor like this one, by any name."""
    key = (tensor.dtype, tensor.shape, op, float(prescale), float(postscale))
    prepared = _prepared.get(key)
    if prepared is None:
        request = _tensors.request(
            "", _ffi.ALLREDUCE, tensor, reduction=op, prescale=prescale, postscale=postscale
        )
        prepared = _ffi.Prepared([request])
        _keep(key, prepared)
    return prepared


def _prepare_group(
    tensors: List[torch.Tensor], name: str, op: int, prescale: float, postscale: float, keep: bool
) -> _ffi.Prepared:
    """An allreduce of a group like this one, by this name; `keep`: there is going to be another."""
    like = tuple([(tensor.dtype, tensor.shape) for tensor in tensors])
    key = (name, like, op, float(prescale), float(postscale))
    prepared = _prepared.get(key)
    if prepared is None:
        factors = dict(reduction=op, prescale=prescale, postscale=postscale)
        requests = [
            _tensors.request(each, _ffi.ALLREDUCE, tensor, **factors)
            for each, tensor in zip(names_of(name, len(tensors)), tensors)
        ]
        prepared = _ffi.Prepared(requests)
        if keep:
            _keep(key, prepared)
    return prepared


def start(
    tensor: torch.Tensor,
    output: torch.Tensor,
    name: str,
    op: int,
    prescale: float,
    postscale: float,
    process_set_id: int,
) -> int:
    """Reduces `tensor` to `output`, both contiguous and in host memory; they may be the same.
    Returns the handle, whose value is `output`."""
    source = tensor.detach()  # stays where it is, whatever becomes of the other
    addresses = (source.data_ptr(), output.data_ptr())
    prepared = _prepare(tensor, op, prescale, postscale)
    return ops.start(prepared, name, addresses, output, source, process_set_id)


def run(
    tensor: torch.Tensor,
    output: torch.Tensor,
    name: Any,
    op: int,
    prescale: float,
    postscale: float,
    process_set_id: int,
) -> None:
    """:func:`start`, and waits; `name` as users give it, or None."""
    addresses = (tensor.data_ptr(), output.data_ptr())
    prepared = _prepare(tensor, op, prescale, postscale)
    ops.run(prepared, "allreduce", name, addresses, (tensor, output), process_set_id)


def start_group(
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    name: str,
    op: int,
    prescale: float,
    postscale: float,
    process_set_id: int,
    keep: bool = True,
) -> int:
    """:func:`start` for a group, whose value is `outputs`; `keep`: there is going to be another of
    this name."""
    sources = [tensor.detach() for tensor in tensors]
    inputs = [source.data_ptr() for source in sources]
    addresses = inputs if outputs is tensors else [output.data_ptr() for output in outputs]
    prepared = _prepare_group(tensors, name, op, prescale, postscale, keep)
    return ops.start_group(prepared, inputs, addresses, outputs, sources, process_set_id)


def submit_staged(
    tensors: List[torch.Tensor],
    outputs: List[torch.Tensor],
    names: Sequence[str],
    value: Any,
    op: int,
    prescale: float,
    postscale: float,
    process_set_id: int,
) -> int:
    """Reduces `tensors`, which need not be in host memory, to `outputs`, which may be the same;
    `value` is what synchronize will return."""
    if _devices.take_reduction(tensors, op, prescale, postscale):
        factors = dict(reduction=op, prescale=prescale, postscale=postscale)
        return _devices.submit(
            _ffi.ALLREDUCE, tensors, outputs, names, value, process_set_id, **factors
        )
    sources = [_tensors.on_host(tensor) for tensor in tensors]
    # A staged tensor is reduced in its copy.
    targets = [
        output.detach() if _tensors.in_host_memory(output) else source
        for output, source in zip(outputs, sources)
    ]
    requests = [
        _tensors.request(
            name,
            _ffi.ALLREDUCE,
            source,
            target,
            reduction=op,
            prescale=prescale,
            postscale=postscale,
        )
        for name, source, target in zip(names, sources, targets)
    ]

    def finish(handle: int) -> Any:
        _ffi.release(handle)
        for output, target in zip(outputs, targets):
            if not _tensors.in_host_memory(output):
                output.detach().copy_(target)
        return value

    return ops.submit(requests, finish, (sources, targets), process_set_id)
