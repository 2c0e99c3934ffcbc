"""Tapes whose gradients are reduced over the ranks."""

from collections.abc import Sequence
from typing import Any, NoReturn, Optional

from horovod.common.compression import AnyCompressor
from horovod.common.ops import Average
from horovod.common.optimizer_arguments import check_compression, check_predivide
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.tensorflow import reduced_gradients
from horovod.tensorflow._library import not_converted, tf
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.gradients import (
    GradientReducer,
    Groups,
    LocalVariables,
    Reduction,
    check_groups,
)

# A mixin: the next base class is tf.GradientTape, or the user's class.
_Behind: Any = object


class DistributedTapeMixin(_Behind):  # type: ignore[misc]
    """The base class that :func:`DistributedGradientTape` puts before a tape's class."""

    _reducer: GradientReducer
    _local: LocalVariables
    _averaged_over: Optional[ProcessSet]
    _made_of: Any  # the tape, which may be recording

    def register_local_source(self, source: Any) -> None:
        """Excludes a source from the reduction: its gradients stay on this rank; see `scale_local_gradients`.

        Args:
          source: a variable that each rank has for itself.
        """
        self._local.add(source)

    @not_converted
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
        unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
    ) -> Any:
        """Computes gradients as tf.GradientTape.gradient does, and reduces them.

        Args:
          target, sources, output_gradients, unconnected_gradients: as for tf.GradientTape.gradient.
          use_generic_names: not used: operations are named after the positions of the sources, so the ranks may have different
            names for them.

        Returns:
          The gradients in the structure of `sources`, with None for a source without one. A source must have a gradient on all
          ranks or on none.
        """
        if self._made_of._recording and not self._persistent:
            self._made_of._pop_tape()  # as a recording tape does
        grads = super().gradient(target, sources, output_gradients, unconnected_gradients)

        def reduce(grads: list[Any], sources: list[Any]) -> list[Any]:
            return self._reducer.reduce(grads, sources)

        flat_sources = tf.nest.flatten(sources)
        reduced = self._local.reduce_others(tf.nest.flatten(grads), flat_sources, reduce)
        reduced_gradients.note(zip(reduced, flat_sources), self._averaged_over, self._local)
        return tf.nest.pack_sequence_as(sources, reduced)

    @not_converted
    def get_local_and_global_gradients(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
    ) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
        """Computes gradients as :meth:`gradient` does, and separates those of local sources.

        Args:
          target, sources, output_gradients, use_generic_names: as for :meth:`gradient`.

        Returns:
          Two lists of pairs (source, gradient): of local sources, and of all others.
        """
        grads = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(tf.nest.flatten(sources), tf.nest.flatten(grads)))
        local = [pair for pair in pairs if pair[0] in self._local]
        return local, [pair for pair in pairs if pair[0] not in self._local]

    def jacobian(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises NotImplementedError."""
        raise NotImplementedError(
            "A DistributedGradientTape has no jacobian: ask the tf.GradientTape in it, and reduce."
        )

    batch_jacobian = jacobian


@not_converted
def DistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Groups = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Returns a tape with the recording of `gradtape`, whose gradient() reduces the gradients over the ranks.

    Args:
      gradtape: a tf.GradientTape.
      device_dense: the device for the operations on dense tensors.
      device_sparse: the device for the operations on tf.IndexedSlices.
      compression: how gradients are compressed for the reduction, e.g. hvd.Compression.fp16.
      sparse_as_dense: whether tf.IndexedSlices are reduced as dense tensors.
      op: hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max or hvd.Product.
      gradient_predivide_factor: with hvd.Average, gradients are divided by this factor before the sum, and by
        size / factor after it.
      num_groups: deprecated; use `groups`.
      groups: a number of groups into which the gradients are split, or lists of variables. The gradients of a group are
        reduced together. Each variable in no list is a separate group.
      process_set: the ranks whose gradients are reduced; any other rank keeps its own gradients.
      scale_local_gradients: whether gradients of local sources are divided by the number of ranks.

    Returns:
      The tape.

    Raises:
      TypeError: `gradtape` is not a tf.GradientTape.
      ValueError: another argument is invalid.

    Example:
      >>> import tensorflow as tf
      >>> weight = tf.Variable(3.0)
      >>> with tf.GradientTape() as tape:
      ...     loss = weight * weight
      >>> tape = hvd.DistributedGradientTape(tape)
      >>> float(tape.gradient(loss, weight))
      6.0
    """
    check_predivide(op, gradient_predivide_factor)
    check_compression(compression)
    reduction = Reduction(
        op=op,
        device_dense=device_dense,
        device_sparse=device_sparse,
        compression=compression,
        sparse_as_dense=sparse_as_dense,
        predivide=gradient_predivide_factor,
        groups=check_groups(num_groups, groups),
        process_set=process_set,
    )
    if isinstance(gradtape, DistributedTapeMixin):
        raise ValueError("The tape is a hvd.DistributedGradientTape already.")
    if not isinstance(gradtape, tf.GradientTape):
        raise TypeError(f"hvd.DistributedGradientTape needs a tf.GradientTape, got {type(gradtape).__name__}")
    own = type(gradtape)
    tape: Any = object.__new__(type(own.__name__, (DistributedTapeMixin, own), {"__module__": __name__}))
    vars(tape).update(vars(gradtape))
    tape._made_of = gradtape
    tape._recording = False  # the original tape ends its recording
    tape._reducer = GradientReducer("DistributedGradientTape", reduction)
    tape._local = LocalVariables(process_set, scale_local_gradients)
    tape._averaged_over = process_set if op == Average else None
    return tape


@not_converted
def PartialDistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Groups = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """Returns a :func:`DistributedGradientTape` that does not reduce the gradients of some layers.

    Args:
      gradtape, device_dense, device_sparse, compression, sparse_as_dense, op, gradient_predivide_factor, num_groups, groups,
        process_set, scale_local_gradients: as for :func:`DistributedGradientTape`.
      local_layers: a Keras layer, or several. Their trainable weights are local sources.

    Returns:
      The tape.

    Raises:
      ValueError: an argument is invalid.
    """
    layers = _layers(local_layers)
    tape = DistributedGradientTape(
        gradtape,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    for layer in layers:
        for variable in layer.trainable_weights:
            tape.register_local_source(variable)
    return tape


def _layers(value: Any) -> Sequence[Any]:
    layers = [] if value is None else [value] if _is_layer(value) else list(value)
    if not all(_is_layer(layer) for layer in layers):
        raise ValueError("local_layers must hold Keras layers only")
    return layers


def _is_layer(value: Any) -> bool:
    """Returns whether `value` is a layer of any Keras. No Keras is imported for this, because there may be several."""
    packages = ("keras", "tf_keras", "tensorflow")
    return any(base.__name__ == "Layer" and base.__module__.split(".")[0] in packages for base in type(value).__mro__)
