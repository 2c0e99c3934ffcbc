"""The functions of :mod:`horovod.keras` and :mod:`horovod.tensorflow.keras`."""

from collections.abc import Iterable, Mapping
from typing import Any, Optional

from horovod._keras import saving, values
from horovod._keras.backends import horovod_for
from horovod._keras.optimizer import distributed
from horovod._keras.packages import backend_of, package_behind
from horovod._keras.settings import Groups, Settings, checked, groups_of
from horovod.common.compression import Compressor, NoneCompressor
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: type[Compressor] = NoneCompressor,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Groups = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """An optimizer that reduces gradients over all ranks before it updates as `optimizer` does. Its class
    has the name of the optimizer's, so that a model saved with it can be loaded without Horovod.

    Each gradient is reduced once: in compute_gradients or minimize of Keras 2, by a DistributedGradientTape,
    or else when it is applied; always before a loss scale looks whether it is finite.

    Args:
      optimizer: of Keras; or a LossScaleOptimizer around one.
      name: of the operations.
      device_dense, device_sparse: where to place operations, for dense tensors and tf.IndexedSlices;
        on TensorFlow only.
      compression: hvd.Compression.fp16 sends floating point gradients as float16.
      sparse_as_dense: reduce tf.IndexedSlices as dense tensors.
      gradient_predivide_factor: with Average, gradients are divided by this before the sum, and by
        size / this after.
      op: Average or Sum.
      backward_passes_per_step: gradients of so many batches are summed up on each rank, then reduced
        and applied. For Keras 3 that is its gradient_accumulation_steps.
      average_aggregated_gradients: divide sums of several batches by their number.
      num_groups: deprecated; use `groups`.
      groups: a number of groups to split the gradients into, or lists of variables; gradients of a
        group are reduced together. On TensorFlow; JAX and torch reduce all together.
      process_set: the ranks whose gradients are put together; on any other rank the optimizer is a
        local one.
      scale_local_gradients: whether gradients of variables given to register_local_var are divided by
        the number of ranks.

    Raises ValueError for bad arguments, an optimizer that is distributed already, and where
    keras.distribution or a schedule of accumulation of Keras's own would do the same once more.
    """
    settings = Settings(
        name,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        op,
        backward_passes_per_step,
        average_aggregated_gradients,
        groups_of(num_groups, groups),
        process_set,
        scale_local_gradients,
    )
    return distributed(optimizer, checked(settings))


def PartialDistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: type[Compressor] = NoneCompressor,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    groups: Groups = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """:func:`DistributedOptimizer` that leaves the gradients of some layers on each rank.

    Args:
      local_layers: a layer, or several, whose trainable weights each rank has for itself.
      All others are those of :func:`DistributedOptimizer`.

    Raises ValueError as :func:`DistributedOptimizer` does, and if `local_layers` has something that is not a
    layer.
    """
    settings = Settings(
        name,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        op,
        groups=groups,
        process_set=process_set,
        scale_local_gradients=scale_local_gradients,
    )
    return distributed(optimizer, checked(settings), local_layers)


class Functions:
    """Those that are for one Keras.

    Args:
      keras: the package `keras`, or tf.keras.

    Attributes:
      compression: the Compression of Keras's backend.
    """

    def __init__(self, keras: Any) -> None:
        self.compression = horovod_for(keras).Compression
        self._keras = keras
        self._backend = backend_of(package_behind(keras))

    def broadcast_global_variables(self, root_rank: int) -> Any:
        """Gives all ranks rank `root_rank`'s global variables, in a graph of tf.compat.v1. Raises RuntimeError
        in eager execution, where there is no such collection."""
        return values.broadcast_global_variables(self._backend, root_rank)

    def allreduce(
        self,
        value: Any,
        name: Optional[str] = None,
        average: Optional[bool] = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        op: Optional[int] = None,
        compression: type[Compressor] = NoneCompressor,
    ) -> Any:
        """Reduces the ranks' values, outside of any function that is compiled.

        Args:
          value: an array, a number, or a tensor that has a value, of the same shape and type on all ranks.
          name: of the operation, the same on all ranks.
          average: deprecated; use `op`.
          prescale_factor, postscale_factor: multiply the value before and after the reduction.
          op: Average (the default), Sum, Min, Max, Product or Adasum.
          compression: hvd.Compression.fp16 sends floating point values as float16.

        Returns a tensor of Keras's backend, in a graph of tf.compat.v1 an array. Raises ValueError for bad
        arguments, otherwise as :mod:`horovod.numpy`.
        """
        scales = prescale_factor, postscale_factor
        return values.allreduce(self._backend, value, name, average, *scales, op, compression)

    def allgather(self, value: Any, name: Optional[str] = None) -> Any:
        """Concatenates the ranks' values on the first dimension, which alone may differ between ranks.
        Otherwise as :meth:`allreduce`."""
        return values.allgather(self._backend, value, name)

    def broadcast(self, value: Any, root_rank: int, name: Optional[str] = None) -> Any:
        """Returns rank `root_rank`'s value on all ranks. Otherwise as :meth:`allreduce`."""
        return values.broadcast(self._backend, value, root_rank, name)

    def reducescatter(self, value: Any, name: Optional[str] = None, op: int = Average) -> Any:
        """Reduces the ranks' values and returns this rank's rows of the result. Otherwise as
        :meth:`allreduce`."""
        return values.reducescatter(self._backend, value, name, op)

    def load_model(
        self,
        filepath: Any,
        custom_optimizers: Optional[Iterable[type]] = None,
        custom_objects: Optional[Mapping[str, Any]] = None,
        compression: type[Compressor] = NoneCompressor,
        legacy_opts: bool = False,
    ) -> Any:
        """Loads a model with a :func:`DistributedOptimizer` that has the state of the optimizer it was saved
        with, distributed or not. Of the settings of a distributed optimizer, only `compression` can be given; the
        others have their defaults. With Keras 3 the optimizer still accumulates the gradients of several steps, but
        averages them, as Keras does, where `backward_passes_per_step` had summed them up: a warning says so.

        Args:
          filepath: as in keras.models.load_model.
          custom_optimizers: classes of optimizers that are not Keras's.
          custom_objects: further classes and functions, by their names.
          compression: of the gradients.
          legacy_opts: the model has a legacy optimizer. Keras 2 finds that out by itself.

        Raises what keras.models.load_model raises, and ValueError with `legacy_opts` in Keras 3.
        """
        settings = checked(Settings(compression=compression))
        return saving.load_model(self._keras, filepath, custom_optimizers, custom_objects, settings, legacy_opts)
