"""Broadcasting of models, optimizers and Python objects."""

import io
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import cloudpickle
import torch

from horovod import _ffi
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch.mpi_ops import (
    allgather,
    broadcast_,
    broadcast_async_,
    rank,
    synchronize,
)

Params = Union[Dict[str, torch.Tensor], List[torch.Tensor], List[Tuple[str, torch.Tensor]]]


def _named(params: Params) -> List[Tuple[Optional[str], torch.Tensor]]:
    if isinstance(params, dict):
        named = sorted(params.items())
    elif isinstance(params, list):
        named = [item if isinstance(item, tuple) else (None, item) for item in params]
    else:
        raise ValueError("invalid params of type: {}".format(type(params)))
    for name, tensor in named:
        if not isinstance(tensor, torch.Tensor):
            raise ValueError("{!r} is a {}, not a tensor".format(name, type(tensor).__name__))
    return named


def broadcast_parameters(params: Params, root_rank: int) -> None:
    """Overwrites `params` with those of rank `root_rank`, in place.

    Args:
      params: ``model.state_dict()``, or a list of tensors or of (name, tensor), such as
        ``list(model.named_parameters())``. The same names, shapes and types on all ranks.
      root_rank: the rank whose values all get.

    Raises ValueError for anything else than a dict or list of tensors.
    """
    _broadcast_tensors(_named(params), root_rank)


def _broadcast_tensors(named: Iterable[Tuple[Optional[str], torch.Tensor]], root_rank: int) -> None:
    started = []
    for name, tensor in named:
        tensor = tensor.detach()
        buffer = tensor.contiguous()  # the tensor itself if it is so already
        started.append((broadcast_async_(buffer, root_rank, name), tensor, buffer))
    for handle, tensor, buffer in started:
        synchronize(handle)
        if buffer is not tensor and buffer.data_ptr() != tensor.data_ptr():
            tensor.copy_(buffer)


class _Placeholder:
    """Stands for a tensor in what is broadcast of a state dict."""

    def __init__(self, index: int, tensor: torch.Tensor) -> None:
        self.index = index
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype


def _take_tensors(value: Any, tensors: List[torch.Tensor]) -> Any:
    """A copy of `value` in which tensors are placeholders; they are appended to `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach().cpu().contiguous())
        return _Placeholder(len(tensors) - 1, value)
    if isinstance(value, dict):
        return {key: _take_tensors(item, tensors) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_take_tensors(item, tensors) for item in value)
    return value


def _put_tensors(value: Any, tensors: Dict[int, torch.Tensor]) -> Any:
    """Undoes _take_tensors; makes new, uninitialized tensors for placeholders and adds them to
    `tensors`."""
    if isinstance(value, _Placeholder):
        tensors[value.index] = torch.empty(value.shape, dtype=value.dtype)
        return tensors[value.index]
    if isinstance(value, dict):
        return {key: _put_tensors(item, tensors) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_put_tensors(item, tensors) for item in value)
    return value


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: Optional[torch.nn.Module] = None,
) -> None:
    """Gives `optimizer` the state and the hyperparameters of rank `root_rank`'s.

    Works for any optimizer, by its ``state_dict``; only the root needs to have state.

    Args:
      optimizer: of the same type, over the same parameters on all ranks.
      root_rank: the rank whose state all get.
      model: not used; scripts for older versions pass it.
    """
    name = "broadcast_optimizer_state"
    if rank() == root_rank:
        tensors: List[torch.Tensor] = []
        schema = _take_tensors(optimizer.state_dict(), tensors)
        broadcast_object(schema, root_rank, name + ".schema")
        named = enumerate(tensors)
    else:
        received: Dict[int, torch.Tensor] = {}
        schema = broadcast_object(None, root_rank, name + ".schema")
        state_dict = _put_tensors(schema, received)
        named = sorted(received.items())
    _broadcast_tensors(
        [("{}.{}".format(name, index), tensor) for index, tensor in named], root_rank
    )
    if rank() != root_rank:
        optimizer.load_state_dict(state_dict)


def _to_bytes(obj: Any) -> torch.Tensor:
    stream = io.BytesIO()
    cloudpickle.dump(obj, stream)
    return torch.frombuffer(stream.getbuffer(), dtype=torch.uint8)


def _from_bytes(tensor: torch.Tensor) -> Any:
    return cloudpickle.loads(_ffi.memory(tensor.data_ptr(), tensor.numel()))


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns rank `root_rank`'s `obj` on all ranks. It is pickled (cloudpickle); the other ranks'
    is not looked at."""
    name = name or "broadcast_object"
    is_root = rank() == root_rank
    data = _to_bytes(obj) if is_root else None
    length = torch.tensor([data.numel() if is_root else 0])
    broadcast_(length, root_rank, name + ".size", process_set)
    if not is_root:
        data = torch.empty(int(length), dtype=torch.uint8)
    broadcast_(data, root_rank, name + ".data", process_set)
    return obj if is_root else _from_bytes(data)


def allgather_object(
    obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    """Returns the list of all ranks' `obj`, in rank order. They are pickled (cloudpickle)."""
    name = name or "allgather_object"
    data = _to_bytes(obj)
    lengths = allgather(torch.tensor([data.numel()]), name + ".sizes", process_set).tolist()
    gathered = allgather(data, name + ".data", process_set)
    return [_from_bytes(part) for part in gathered.split(lengths)]
