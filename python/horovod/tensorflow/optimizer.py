"""DistributedOptimizer: an optimizer that reduces gradients over all ranks before each update."""

import importlib
from typing import Any, Optional

from horovod.common.compression import AnyCompressor
from horovod.common.ops import Adasum, Average
from horovod.common.optimizer_arguments import check_compression, check_predivide, checked_passes
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.tensorflow.adasum_optimizer import DistributedAdasumOptimizer
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.gradients import Groups, Reduction, check_groups
from horovod.tensorflow.optimizer_v1 import DistributedOptimizerV1, Optimizer, OptimizerAround


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Groups = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Returns an optimizer that reduces gradients over all ranks of the process set, then updates as `optimizer` does.

    Args:
      optimizer: an optimizer of tf.compat.v1.train, whose compute_gradients then reduces; or one of Keras: see
        :func:`horovod.tensorflow.keras.DistributedOptimizer`.
      name: the optimizer's name, and the scope of its operations.
      use_locking: as for tf.compat.v1.train.Optimizer.
      device_dense: the device for the operations on dense tensors.
      device_sparse: the device for the operations on tf.IndexedSlices.
      compression: how gradients are compressed for the reduction, e.g. hvd.Compression.fp16.
      sparse_as_dense: whether tf.IndexedSlices are reduced as dense tensors.
      backward_passes_per_step: how many steps accumulate gradients on each rank before these are reduced and applied.
      op: hvd.Average, hvd.Sum or another reduction. With hvd.Adasum, for optimizers of tf.compat.v1 only, the change that
        local steps make to the variables is reduced instead of the gradients (Maleki et al., Scaling Distributed Training
        with Adaptive Summation, 2020).
      gradient_predivide_factor: with hvd.Average, gradients are divided by this factor before the sum, and by
        size / factor after it.
      average_aggregated_gradients: whether sums of several steps are divided by their number.
      num_groups: deprecated; use `groups`.
      groups: a number of groups into which the gradients are split, or lists of variables. The gradients of a group are
        reduced together. Each variable in no list is a separate group.
      process_set: the ranks whose gradients are reduced. On any other rank the optimizer stays local.
      scale_local_gradients: whether gradients of variables passed to register_local_var are divided by the number of ranks.

    Returns:
      The distributed optimizer.

    Raises:
      ValueError: arguments are invalid or contradict each other, or `optimizer` is a distributed optimizer already.
    """
    check_predivide(op, gradient_predivide_factor)
    if op == Adasum and average_aggregated_gradients:
        raise ValueError("Adasum does not support average_aggregated_gradients == True")
    backward_passes_per_step = checked_passes(backward_passes_per_step)
    check_compression(compression)
    groups = check_groups(num_groups, groups)
    if not isinstance(optimizer, Optimizer):
        if op == Adasum:
            raise ValueError("op=Adasum is for optimizers of tf.compat.v1.train, not for those of Keras")
        # Not before it is needed: it imports Keras.
        return importlib.import_module("horovod.tensorflow.keras").DistributedOptimizer(
            optimizer=optimizer,
            name=name,
            device_dense=device_dense,
            device_sparse=device_sparse,
            compression=compression,
            sparse_as_dense=sparse_as_dense,
            gradient_predivide_factor=gradient_predivide_factor,
            op=op,
            backward_passes_per_step=backward_passes_per_step,
            average_aggregated_gradients=average_aggregated_gradients,
            groups=groups,
            process_set=process_set,
            scale_local_gradients=scale_local_gradients,
        )
    if isinstance(optimizer, OptimizerAround):
        raise ValueError("The optimizer is a hvd.DistributedOptimizer already.")
    reduction = Reduction(
        op=op,
        device_dense=device_dense,
        device_sparse=device_sparse,
        compression=compression,
        sparse_as_dense=sparse_as_dense,
        predivide=gradient_predivide_factor,
        groups=groups,
        process_set=process_set,
    )
    if op == Adasum:
        return DistributedAdasumOptimizer(optimizer, name, use_locking, reduction, backward_passes_per_step)
    return DistributedOptimizerV1(
        optimizer,
        name,
        use_locking,
        reduction,
        backward_passes_per_step,
        average_aggregated_gradients,
        scale_local_gradients,
    )
