"""Broadcasts of models, optimizers and Python objects."""

from collections.abc import Iterable
from typing import Optional, Union

import torch

from horovod.common import objects, ops
from horovod.common.class_names import class_of, with_article
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.elastic.stream import broadcast_tree
from horovod.torch import _loading, _tensors
from horovod.torch._tensors import not_compiled
from horovod.torch.mpi_ops import allgather as allgather
from horovod.torch.mpi_ops import broadcast_async_, rank, synchronize

Params = Union[dict[str, torch.Tensor], list[torch.Tensor], list[tuple[str, torch.Tensor]]]


def _named(params: Params) -> list[tuple[Optional[str], torch.Tensor]]:
    named: list[tuple[Optional[str], torch.Tensor]]
    if isinstance(params, dict):
        named = [*sorted(params.items())]
    elif isinstance(params, list):
        named = [item if isinstance(item, tuple) else (None, item) for item in params]
    else:
        raise ValueError(f"invalid params of type: {type(params)}; pass model.state_dict(), or a list of named tensors")
    for name, tensor in named:
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{name!r} is {with_article(tensor)}, not a tensor")
    return named


def broadcast_parameters(params: Params, root_rank: int, process_set: ProcessSet = global_process_set) -> None:
    """Overwrites parameters with those of rank `root_rank`, in place.

    Args:
      params: ``model.state_dict()``, or a list of tensors or of pairs (name, tensor), such as
        ``list(model.named_parameters())``. Names, shapes and dtypes are the same on all ranks.
      root_rank: the rank in the world whose values all ranks get.
      process_set: the ranks that take part.

    Raises:
      ValueError: `params` is not a dict or a list of tensors.

    Example:
      >>> import torch
      >>> model = torch.nn.Linear(4, 2)
      >>> hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    """
    _broadcast_tensors(_named(params), root_rank, process_set)


def _broadcast_tensors(
    named: Iterable[tuple[Optional[str], torch.Tensor]],
    root_rank: int,
    process_set: ProcessSet,
) -> None:
    named = list(named)
    for name, tensor in named:
        _tensors.check_has_memory(tensor, name or "a tensor", "broadcast_parameters")
        _tensors.check_type(tensor)
    started = []
    for name, tensor in named:
        tensor = tensor.detach()
        buffer = tensor.contiguous()  # the tensor itself if it is so already
        started.append((broadcast_async_(buffer, root_rank, name, process_set), tensor, buffer))
    for handle, tensor, buffer in started:
        synchronize(handle)
        if buffer is not tensor and buffer.data_ptr() != tensor.data_ptr():
            _tensors.assign(tensor, buffer)


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: Optional[torch.nn.Module] = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Gives `optimizer` the state and the hyperparameters of rank `root_rank`'s optimizer.

    Works for any optimizer, through its ``state_dict`` and those of the optimizers in its attributes. Only the root needs to have
    state. On a rank whose optimizer has no state yet, the gradients of its parameters are zero afterwards; no step is taken.

    Args:
      optimizer: an optimizer of the same type, over the same parameters, on all ranks.
      root_rank: the rank in the world whose state all ranks get.
      model: the model, which shows which parameters have sparse gradients.
      process_set: the ranks that take part.

    Raises:
      HorovodInternalError: Horovod is not initialized, or the world is broken.
      TypeError: `optimizer` is no optimizer.
      Exception: whatever the optimizer's ``load_state_dict`` raises.

    Example:
      >>> import torch
      >>> model = torch.nn.Linear(4, 2)
      >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
      >>> hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    """
    if isinstance(optimizer, torch.nn.Module) or not hasattr(optimizer, "state_dict"):
        raise TypeError(f"hvd.broadcast_optimizer_state needs the optimizer itself, got {class_of(optimizer)}")
    ops.check_ready()
    own = _loading.state_of(optimizer)
    if not own.get("state", optimizer.state):  # an optimizer of another kind may name its state differently
        _zero_gradients(optimizer, model)
    received = broadcast_tree(_loading.TREES, own, root_rank, "broadcast_optimizer_state", process_set)
    if rank() != root_rank:
        _loading.load_optimizer(optimizer, received)


def _zero_gradients(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> None:
    """Gives each parameter that requires a gradient one of zeros; a sparse one where the model's gradients are sparse."""
    sparse = _sparse_parameters(optimizer, model)
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.requires_grad:
                zeros = torch.zeros_like(p.detach())
                p.grad = zeros.to_sparse(1) if sparse is None or id(p) in sparse else zeros


def _sparse_parameters(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> Optional[set[int]]:
    """Returns the ids of the parameters whose gradients are sparse; None means all parameters."""
    if isinstance(optimizer, torch.optim.SparseAdam):
        return None
    modules = model.modules() if model is not None else ()
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return {id(m.weight) for m in modules if isinstance(m, kinds) and m.sparse}


broadcast_object = not_compiled(objects.broadcast_object)
allgather_object = not_compiled(objects.allgather_object)
