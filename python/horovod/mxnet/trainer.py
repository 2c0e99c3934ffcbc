"""Training with averaged gradients: with gluon (DistributedTrainer), and with anything else that updates by an optimizer,
such as Module (DistributedOptimizer).

The reduction computes the average. So `rescale_grad` does not change, and gradients that a script reads after the
reduction are averages.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Optional

import mxnet
from mxnet.ndarray import NDArray as Array

from horovod.common.class_names import class_of
from horovod.common.compression import AnyCompressor, compress_group, decompress_group
from horovod.common.process_sets import ProcessSet, global_process_set, takes_part
from horovod.common.util import split_list
from horovod.mxnet.compression import Compression
from horovod.mxnet.mpi_ops import _collectives, grouped_allreduce_

__all__ = ["DistributedOptimizer", "DistributedTrainer"]

# All other attributes of a DistributedOptimizer are those of the optimizer within.
_OWN = ("_average", "_optimizer", "_reduce", "update", "update_multi_precision")


class _Averaging:
    """Averages gradients over the ranks, in place."""

    def __init__(
        self,
        predivide_factor: float,
        num_groups: int,
        process_set: ProcessSet,
        prefix: str = "",
        compression: AnyCompressor = Compression.none,
    ) -> None:
        self.predivide_factor, self.num_groups, self.process_set = predivide_factor, num_groups, process_set
        self._prefix, self._compression = prefix, compression

    def __call__(self, indices: Sequence[Any], gradients: Sequence[Array]) -> None:
        """Averages the gradients of the parameters with these indices, the same on all ranks."""
        if not takes_part(self.process_set):
            return
        groups = split_list(list(zip(indices, gradients)), self.num_groups or 1)
        for group in filter(None, groups):
            own, given = zip(*group)
            self._average(f"{self._prefix}{own[0]}:{own[-1]}", given)

    def _average(self, name: str, gradients: Sequence[Array]) -> None:
        arrays, contexts = compress_group(_collectives.allreduce.adapter, gradients, self._compression)
        factor = self.predivide_factor
        grouped_allreduce_(arrays, None, name, 0, 1.0 / factor, factor, self.process_set)
        for gradient, average in zip(gradients, decompress_group(arrays, contexts, self._compression)):
            if average is not gradient:
                gradient[:] = average


class DistributedOptimizer(mxnet.optimizer.Optimizer):  # type: ignore[misc]  # MXNet has no types
    """An optimizer that averages gradients over the ranks before each update.

    Its attributes, such as `rescale_grad`, are those of the inner optimizer, for reading and writing.

    Args:
      optimizer: an optimizer of MXNet or of the script.
      gradient_predivide_factor: gradients are divided by this factor before the sum, and by size / factor after it.
      num_groups: the number of groups in which the gradients of one call are reduced; 0: one group.
      process_set: the ranks over which gradients are averaged. Any other rank updates with its own gradients.

    Raises:
      TypeError: `optimizer` is no optimizer of MXNet.
    """

    def __init__(
        self,
        optimizer: mxnet.optimizer.Optimizer,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        if not isinstance(optimizer, mxnet.optimizer.Optimizer):
            raise TypeError(f"hvd.DistributedOptimizer needs an mxnet.optimizer.Optimizer, got {class_of(optimizer)}")
        average = _Averaging(gradient_predivide_factor, num_groups, process_set)
        self.__dict__.update(_optimizer=optimizer, _average=average)

    def __getattribute__(self, name: str) -> Any:
        is_own = name.startswith("__") or name in _OWN
        return object.__getattribute__(self, name) if is_own else getattr(self._optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._optimizer, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        average = self._average
        if average.process_set is not global_process_set:
            raise ValueError("A DistributedOptimizer can be pickled only if it is one of all ranks.")
        return DistributedOptimizer, (self._optimizer, average.predivide_factor, average.num_groups)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Averages the gradients, then updates as the inner optimizer does.

        Args:
          index, weight, grad, state: as for mxnet.optimizer.Optimizer.update.
        """
        self._reduce(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Averages the gradients, then updates as the inner optimizer does.

        Args:
          index, weight, grad, state: as for mxnet.optimizer.Optimizer.update_multi_precision.
        """
        self._reduce(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def _reduce(self, index: Any, grad: Any) -> None:
        is_list = isinstance(index, (tuple, list))
        self._average(index if is_list else [index], grad if is_list else [grad])


class DistributedTrainer(mxnet.gluon.Trainer):  # type: ignore[misc]
    """A gluon Trainer that averages gradients over the ranks before each update. ``step(n)`` takes the size of a rank's own
    batch.

    Args:
      params: ``net.collect_params()``, or a list of parameters in the same order on all ranks, each on one context.
      optimizer, optimizer_params: as for gluon's Trainer.
      compression: hvd.Compression.none or hvd.Compression.fp16, for the reduction.
      gradient_predivide_factor, num_groups, process_set: as for :class:`DistributedOptimizer`.
      prefix: a prefix of the operations' names.

    Raises:
      ValueError: the parameters are on several contexts.
    """

    def __init__(
        self,
        params: Any,
        optimizer: Any,
        optimizer_params: Optional[dict[str, Any]] = None,
        compression: AnyCompressor = Compression.none,
        gradient_predivide_factor: float = 1.0,
        prefix: Optional[str] = None,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        if isinstance(optimizer, DistributedOptimizer):
            warnings.warn("DistributedTrainer reduces by itself; the DistributedOptimizer is unwrapped.", stacklevel=2)
            optimizer = optimizer._optimizer
        super().__init__(params, optimizer, optimizer_params=optimizer_params, kvstore=None)
        if len(self._contexts) > 1:
            raise ValueError(f"Parameters lie on {self._contexts}: DistributedTrainer takes one context for each rank.")
        self._average = _Averaging(gradient_predivide_factor, num_groups, process_set, prefix or "", compression)

    def _allreduce_grads(self) -> None:
        indices = [i for i, param in enumerate(self._params) if param.grad_req != "null"]
        if indices:
            self._average(indices, [self._params[i].list_grad()[0] for i in indices])
