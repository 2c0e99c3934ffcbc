"""The functions of :mod:`horovod.keras` and :mod:`horovod.tensorflow.keras`."""

from collections.abc import Iterable, Mapping
from typing import Any, Optional

from horovod._keras import saving, values
from horovod._keras.backends import horovod_for
from horovod._keras.optimizer import distributed
from horovod._keras.packages import backend_of, package_behind
from horovod._keras.settings import Groups, Settings, checked, groups_of
from horovod.common.compression import AnyCompressor, NoneCompressor
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = NoneCompressor,
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
    """Returns an optimizer that reduces gradients over all ranks of the process set, then updates as `optimizer` does.

    Its class has the name of `optimizer`'s class, so a model saved with it can be loaded without Horovod. Each gradient is
    reduced once: in compute_gradients or minimize of Keras 2, by a DistributedGradientTape, or else when it is applied. The
    reduction always precedes a loss scale's check that gradients are finite.

    Args:
      optimizer: a Keras optimizer, or a LossScaleOptimizer around one.
      name: the name of the operations.
      device_dense: the device for the operations on dense tensors, on TensorFlow only.
      device_sparse: the device for the operations on tf.IndexedSlices, on TensorFlow only.
      compression: how gradients are compressed for the reduction, e.g. hvd.Compression.fp16.
      sparse_as_dense: whether tf.IndexedSlices are reduced as dense tensors.
      gradient_predivide_factor: with hvd.Average, gradients are divided by this factor before the sum, and by
        size / factor after it.
      op: hvd.Average or hvd.Sum.
      backward_passes_per_step: how many batches accumulate gradients on each rank before these are reduced and applied. In
        Keras 3 this is the optimizer's gradient_accumulation_steps.
      average_aggregated_gradients: whether sums of several batches are divided by their number.
      num_groups: deprecated; use `groups`.
      groups: a number of groups into which the gradients are split, or lists of variables. The gradients of a group are
        reduced together. On TensorFlow only; on JAX and torch all gradients are reduced together.
      process_set: the ranks whose gradients are reduced. On any other rank the optimizer stays local.
      scale_local_gradients: whether gradients of variables passed to register_local_var are divided by the number of ranks.

    Returns:
      The distributed optimizer.

    Raises:
      ValueError: an argument is invalid; `optimizer` is a distributed optimizer already; or keras.distribution, or the
        optimizer's own accumulation, would reduce or accumulate a second time.

    Example:
      >>> import keras
      >>> optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))
      >>> type(optimizer).__name__
      'SGD'
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
    compression: AnyCompressor = NoneCompressor,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    groups: Groups = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
) -> Any:
    """Returns a :func:`DistributedOptimizer` that does not reduce the gradients of some layers.

    Args:
      optimizer, name, device_dense, device_sparse, compression, sparse_as_dense, gradient_predivide_factor, op, groups,
        process_set, scale_local_gradients, backward_passes_per_step, average_aggregated_gradients: as for
        :func:`DistributedOptimizer`.
      local_layers: a layer, or several. Each rank has its own values of their trainable weights.

    Returns:
      The distributed optimizer.

    Raises:
      ValueError: as for :func:`DistributedOptimizer`; also if an element of `local_layers` is not a layer.
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
        groups=groups,
        process_set=process_set,
        scale_local_gradients=scale_local_gradients,
    )
    return distributed(optimizer, checked(settings), local_layers)


class Functions:
    """The functions that depend on which Keras is used.

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
        """Gives all ranks rank `root_rank`'s global variables, in a graph of tf.compat.v1.

        Args:
          root_rank: the rank in the world whose values all ranks get.

        Raises:
          RuntimeError: execution is eager, where there is no such collection.
        """
        return values.broadcast_global_variables(self._backend, root_rank)

    def allreduce(
        self,
        value: Any,
        name: Optional[str] = None,
        average: Optional[bool] = None,
        prescale_factor: float = 1.0,
        postscale_factor: float = 1.0,
        op: Optional[int] = None,
        compression: AnyCompressor = NoneCompressor,
    ) -> Any:
        """Reduces the ranks' values. It must not be called in a compiled function.

        Args:
          value: an array, a number, or a tensor that has a value. Shape and dtype are the same on all ranks.
          name: the operation's name, the same on all ranks.
          average: deprecated; use `op`. True stands for hvd.Average, False for hvd.Sum.
          prescale_factor: factor by which the input is multiplied before the reduction.
          postscale_factor: factor by which the result is multiplied after it.
          op: hvd.Average (the default), hvd.Sum, hvd.Min, hvd.Max, hvd.Product or hvd.Adasum.
          compression: how the value is compressed for the reduction, e.g. hvd.Compression.fp16.

        Returns:
          A tensor of Keras's backend; in a graph of tf.compat.v1 an array.

        Raises:
          ValueError: an argument is invalid.
          HorovodInternalError: see :mod:`horovod.numpy` for the errors of all collectives.

        Example:
          >>> float(hvd.allreduce(2.0))
          2.0
        """
        scales = prescale_factor, postscale_factor
        return values.allreduce(self._backend, value, name, average, *scales, op, compression)

    def allgather(self, value: Any, name: Optional[str] = None) -> Any:
        """Concatenates the ranks' values on the first dimension, in rank order.

        Args:
          value: a value with at least one dimension. Only the first dimension may differ between ranks.
          name: the operation's name, the same on all ranks.

        Returns:
          The concatenated value, as for :meth:`allreduce`.
        """
        return values.allgather(self._backend, value, name)

    def broadcast(self, value: Any, root_rank: int, name: Optional[str] = None) -> Any:
        """Returns rank `root_rank`'s value on all ranks.

        Args:
          value: on the root the value to send. Shape and dtype are the same on all ranks.
          root_rank: the root's rank in the world.
          name: the operation's name, the same on all ranks.

        Returns:
          The root's value, as for :meth:`allreduce`.
        """
        return values.broadcast(self._backend, value, root_rank, name)

    def reducescatter(self, value: Any, name: Optional[str] = None, op: int = Average) -> Any:
        """Reduces the ranks' values and returns this rank's rows of the result.

        Args:
          value: a value with at least one dimension. Shape and dtype are the same on all ranks.
          name: the operation's name, the same on all ranks.
          op: hvd.Average (the default), hvd.Sum, hvd.Min, hvd.Max or hvd.Product.

        Returns:
          This rank's rows, as for :meth:`allreduce`.
        """
        return values.reducescatter(self._backend, value, name, op)

    def load_model(
        self,
        filepath: Any,
        custom_optimizers: Optional[Iterable[type]] = None,
        custom_objects: Optional[Mapping[str, Any]] = None,
        compression: AnyCompressor = NoneCompressor,
        legacy_opts: bool = False,
    ) -> Any:
        """Loads a model with a :func:`DistributedOptimizer` that has the state of the optimizer with which it was saved, distributed
        or not.

        Of the settings of a distributed optimizer only `compression` can be given; the others have their defaults. In Keras 3 the
        optimizer still accumulates the gradients of several steps, but averages them, as Keras does, where
        `backward_passes_per_step` had summed them; a warning says so.

        Args:
          filepath: as for keras.models.load_model.
          custom_optimizers: classes of optimizers that are not Keras's.
          custom_objects: further classes and functions, by their names.
          compression: how gradients are compressed for the reduction.
          legacy_opts: whether the model has a legacy optimizer. Keras 2 finds that out by itself.

        Returns:
          The model.

        Raises:
          ValueError: `legacy_opts` is given in Keras 3.
          Exception: whatever keras.models.load_model raises.
        """
        settings = checked(Settings(compression=compression))
        return saving.load_model(self._keras, filepath, custom_optimizers, custom_objects, settings, legacy_opts)
