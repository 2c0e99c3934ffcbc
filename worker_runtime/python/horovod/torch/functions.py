"""Broadcasting of models, optimizers and Python objects."""

import io
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _loading, _stream, _trees
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


def broadcast_parameters(
    params: Params, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Overwrites `params` with those of rank `root_rank`, in place.

    Args:
      params: ``model.state_dict()``, or a list of tensors or of (name, tensor), such as
        ``list(model.named_parameters())``. The same names, shapes and types on all ranks.
      root_rank: the rank (of all ranks) whose values all get.
      process_set: the ranks that take part.

    Raises ValueError for anything else than a dict or list of tensors.
    """
    _broadcast_tensors(_named(params), root_rank, process_set)


def _broadcast_tensors(
    named: Iterable[Tuple[Optional[str], torch.Tensor]],
    root_rank: int,
    process_set: ProcessSet,
) -> None:
    started = []
    for name, tensor in named:
        tensor = tensor.detach()
        buffer = tensor.contiguous()  # the tensor itself if it is so already
        started.append((broadcast_async_(buffer, root_rank, name, process_set), tensor, buffer))
    for handle, tensor, buffer in started:
        synchronize(handle)
        if buffer is not tensor and buffer.data_ptr() != tensor.data_ptr():
            tensor.copy_(buffer)


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: Optional[torch.nn.Module] = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Gives `optimizer` the state and the hyperparameters of rank `root_rank`'s.

    Works for any optimizer, by its ``state_dict``; only the root needs to have state.

    Args:
      optimizer: of the same type, over the same parameters on all ranks.
      root_rank: the rank (of all ranks) whose state all get.
      model: not used; scripts for older versions pass it.
      process_set: the ranks that take part.
    """
    ops.check_ready()
    own = optimizer.state_dict()
    received = broadcast_tree(own, root_rank, "broadcast_optimizer_state", process_set)
    if rank() != root_rank:
        _loading.load_optimizer(optimizer, received)


def broadcast_tree(
    own: Any, root_rank: int, name: str, process_set: ProcessSet = global_process_set
) -> Any:
    """Returns rank `root_rank`'s tree on all ranks: nested dicts, lists and tuples of tensors and
    other values, which are pickled. Each rank gives its own. Where the root's has a tensor of the
    same shape and type in the same place, that of `own` is overwritten and part of the result;
    other tensors are new, in host memory. The root gets `own` itself."""
    if rank() == root_rank:
        taken = _trees.take_tensors(own)
        broadcast_object((taken.schema, taken.kinds), root_rank, name + ".schema", process_set)
        _stream.broadcast_tensors(taken.tensors, root_rank, name, process_set)
        return own
    schema, kinds = broadcast_object(None, root_rank, name + ".schema", process_set)
    destinations = _stream.destinations(schema, kinds, own)
    with _stream.meanwhile(destinations.take_memory):
        _stream.broadcast_tensors(destinations.tensors, root_rank, name, process_set)
    return _trees.put_tensors(schema, destinations.tensors)


def _to_bytes(obj: Any) -> torch.Tensor:
    import cloudpickle  # not before it is needed: it costs imports

    stream = io.BytesIO()
    cloudpickle.dump(obj, stream)
    return torch.frombuffer(stream.getbuffer(), dtype=torch.uint8)


def _from_bytes(tensor: torch.Tensor) -> Any:
    import cloudpickle

    return cloudpickle.loads(_ffi.memory(tensor.data_ptr(), tensor.numel()))


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns rank `root_rank`'s `obj` on all ranks of the process set. It is pickled (cloudpickle);
    the other ranks' is not looked at."""
    name = name or "broadcast_object"
    ops.check_ready()
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
    """Returns the list of the `obj` of all ranks of the process set, in rank order. They are pickled
    (cloudpickle)."""
    name = name or "allgather_object"
    data = _to_bytes(obj)
    lengths = allgather(torch.tensor([data.numel()]), name + ".sizes", process_set).tolist()
    gathered = allgather(data, name + ".data", process_set)
    return [_from_bytes(part) for part in gathered.split(lengths)]
