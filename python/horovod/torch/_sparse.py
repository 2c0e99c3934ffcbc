"""Allreduce of sparse tensors."""

from typing import Any, Callable, Optional

import torch

from horovod.common import ops, process_sets
from horovod.common.ops import Average, Sum
from horovod.common.process_sets import ProcessSet, global_process_set, size_of
from horovod.torch import _tensors
from horovod.torch._allgather import allgather_async

# Other ranks' indices may be out of this rank's range, which later versions of torch do not look
# for unless they are asked to; they warn that they do not.
_CHECKS = hasattr(torch.sparse, "check_sparse_tensor_invariants")
_CHECKED: dict[str, Any] = {"check_invariants": True} if _CHECKS else {}


@_tensors.not_compiled
def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: Optional[str],
    op: int,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Starts the reduction of a sparse COO tensor over all ranks of the process set and returns at once.

    It is made of two allgathers, ``<name>.indices`` and ``<name>.values``; the number of values may differ between ranks.

    Args:
      tensor: a sparse COO tensor. Shape and dtype are the same on all ranks.
      name: the operation's name; see :mod:`horovod.torch.mpi_ops`.
      op: hvd.Average or hvd.Sum.
      process_set: the ranks that take part.

    Returns:
      A function without arguments, which waits for the operation and returns the result: a sparse tensor of the same shape
      and dtype.

    Raises:
      ValueError: `op` is another reduction, or `tensor` is not sparse COO.
      HorovodInternalError: see :mod:`horovod.torch.mpi_ops` for the errors of all collectives.

    Example:
      >>> import torch
      >>> gradient = torch.sparse_coo_tensor([[2]], [7.0], (4,))
      >>> finish = hvd.sparse_allreduce_async(gradient, "embedding", hvd.Sum)
      >>> finish().to_dense()
      tensor([0., 0., 7., 0.])
    """
    process_set_id = process_sets.check(process_set)
    if op not in (Average, Sum):
        raise ValueError("sparse_allreduce_async supports hvd.Average and hvd.Sum only.")
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.sparse_coo:
        raise ValueError("sparse_allreduce_async needs a sparse COO tensor.")
    indices = tensor._indices().t().contiguous()
    values = tensor._values().contiguous()
    _tensors.check(values)
    with ops.naming("sparse_allreduce", name, process_set_id) as name:
        handles = (
            allgather_async(indices, name + ".indices", process_set),
            allgather_async(values, name + ".values", process_set),
        )

    def finish() -> torch.Tensor:
        all_indices, all_values = (ops.synchronize(handle) for handle in handles)
        if op == Average:
            all_values = all_values / size_of(process_set)
        return torch.sparse_coo_tensor(all_indices.t(), all_values, tensor.size(), **_CHECKED)

    return finish
