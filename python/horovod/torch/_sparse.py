"""Allreduce of sparse tensors."""

from typing import Callable, Optional

import torch

from horovod.common import ops, process_sets
from horovod.common.ops import Average, Sum
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _tensors
from horovod.torch._allgather import allgather_async

# Other ranks' indices may be out of this rank's range, which later versions of torch do not look
# for unless they are asked to; they warn that they do not.
_CHECKS = hasattr(torch.sparse, "check_sparse_tensor_invariants")
_CHECKED = {"check_invariants": True} if _CHECKS else {}


@_tensors.not_compiled
def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: Optional[str],
    op: int,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Starts a reduction (hvd.Average or Sum) of a sparse COO tensor over all ranks of the
    process set.

    Returns a function that waits for it and returns the sparse sum or average, of the same shape
    and dtype. Made of two allgathers, ``<name>.indices`` and ``<name>.values``; the number of
    values may differ between ranks.

    Raises ValueError for another `op` or a tensor that is not sparse COO; otherwise as
    :mod:`horovod.torch.mpi_ops` says.
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
            all_values = all_values / process_set.size()
        return torch.sparse_coo_tensor(all_indices.t(), all_values, tensor.size(), **_CHECKED)

    return finish
