"""Broadcasting of models, optimizers and Python objects."""

import io
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.elastic import stream as _stream, trees as _trees
from horovod.torch import _loading
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

    Works for any optimizer, by its ``state_dict``; only the root needs to have state. Where an
    optimizer has none yet, the gradients of its parameters are zeros afterwards; there is no step.

    Args:
      optimizer: of the same type, over the same parameters on all ranks.
      root_rank: the rank (of all ranks) whose state all get.
      model: tells which parameters have sparse gradients.
      process_set: the ranks that take part.
    """
    ops.check_ready()
    own = optimizer.state_dict()
    if not own["state"]:
        _zero_gradients(optimizer, model)
    received = broadcast_tree(own, root_rank, "broadcast_optimizer_state", process_set)
    if rank() != root_rank:
        _loading.load_optimizer(optimizer, received)


def _zero_gradients(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> None:
    """Gives parameters that want a gradient one of zeros, sparse where theirs are."""
    sparse = _sparse_parameters(optimizer, model)
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.requires_grad:
                zeros = torch.zeros_like(p.detach())
                p.grad = zeros.to_sparse(1) if sparse is None or id(p) in sparse else zeros


def _sparse_parameters(
    optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]
) -> Optional[Set[int]]:
    """The ids of those whose gradients are sparse; None: all are."""
    if isinstance(optimizer, torch.optim.SparseAdam):
        return None
    modules = model.modules() if model is not None else ()
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return {id(m.weight) for m in modules if isinstance(m, kinds) and m.sparse}


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


class _Sealing:
    """One operation that carries objects: what it brings is only unpickled if it is what the other
    rank has sent. Whoever unpickles what a stranger made runs the stranger's code."""

    def __init__(self, kind: str, name: str, process_set: ProcessSet) -> None:
        self._name = "{} {}".format(kind, name)
        self._process_set = process_set

    def seal(self, data: torch.Tensor) -> None:
        """Fills in the seal of what :func:`_to_bytes` has made. No operation of this name may come
        between it and the data's."""
        size = data.numel() - _ffi.SEAL_BYTES
        _ffi.seal(self._name, self._process_set.process_set_id or 0, data.data_ptr(), size)

    def check(self, senders: Sequence[int], received: Sequence[torch.Tensor]) -> None:
        """Raises HorovodInternalError, and the world is broken, if one is not what its sender, a
        rank of all ranks, has sealed. To be called on every rank."""
        addresses = [data.data_ptr() for data in received]
        sizes = [data.numel() for data in received]
        process_set = self._process_set.process_set_id or 0
        _ffi.open_sealed(self._name, process_set, senders, addresses, sizes)


def _to_bytes(obj: Any) -> torch.Tensor:
    """A pickle, and room for its seal."""
    import cloudpickle  # not before it is needed: it costs imports

    stream = io.BytesIO()
    cloudpickle.dump(obj, stream)
    stream.write(bytes(_ffi.SEAL_BYTES))
    return torch.frombuffer(stream.getbuffer(), dtype=torch.uint8)


def _from_bytes(checked: torch.Tensor) -> Any:
    import cloudpickle

    size = checked.numel() - _ffi.SEAL_BYTES
    return cloudpickle.loads(_ffi.memory(checked.data_ptr(), size))


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
    sealing = _Sealing("broadcast", name, process_set)
    data = _to_bytes(obj) if is_root else None
    length = torch.tensor([data.numel() if is_root else 0])
    broadcast_(length, root_rank, name + ".size", process_set)
    if is_root:
        sealing.seal(data)
    else:
        data = torch.empty(max(int(length), 0), dtype=torch.uint8)
    broadcast_(data, root_rank, name + ".data", process_set)
    sealing.check([root_rank], [data])
    return obj if is_root else _from_bytes(data)


def allgather_object(
    obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> List[Any]:
    """Returns the list of the `obj` of all ranks of the process set, in rank order. They are pickled
    (cloudpickle)."""
    name = name or "allgather_object"
    sealing = _Sealing("allgather", name, process_set)
    data = _to_bytes(obj)
    lengths = allgather(torch.tensor([data.numel()]), name + ".sizes", process_set).tolist()
    sealing.seal(data)
    gathered = allgather(data, name + ".data", process_set)
    if min(lengths) < 0 or sum(lengths) != gathered.numel():
        lengths = [gathered.numel()] + [0] * (len(lengths) - 1)  # which fits no seal
    parts = gathered.split(lengths)
    sealing.check(process_set.ranks, parts)
    return [_from_bytes(part) for part in parts]
