"""The distributed optimizer around one of tf.compat.v1, which reduces gradients."""

from typing import Any, Optional

from horovod.common.basics import rank
from horovod.tensorflow._library import not_converted, tf
from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper
from horovod.tensorflow.gradients import GradientReducer, LocalVariables, Reduction

Optimizer: Any = tf.compat.v1.train.Optimizer


class OptimizerAround(Optimizer):  # type: ignore[misc]  # TensorFlow is Any here
    """An optimizer that delegates the computation and the application of gradients to another one, `optimizer`."""

    def __init__(self, optimizer: Any, name: str, use_locking: bool) -> None:
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer = optimizer

    @not_converted
    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Computes gradients as the inner optimizer does."""
        pairs: list[tuple[Any, Any]] = self._optimizer.compute_gradients(*args, **kwargs)
        return pairs

    @not_converted
    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """Applies gradients as the inner optimizer does."""
        return self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def get_slot(self, var: Any, name: str) -> Any:
        """Returns a slot of the inner optimizer."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> Any:
        """Returns the names of the inner optimizer's slots."""
        return self._optimizer.get_slot_names()

    def variables(self) -> Any:
        """Returns the inner optimizer's variables."""
        return self._optimizer.variables()


class DistributedOptimizerV1(OptimizerAround):
    """Reduces the gradients that the inner optimizer has computed. See :func:`horovod.tensorflow.DistributedOptimizer`."""

    def __init__(
        self,
        optimizer: Any,
        name: Optional[str],
        use_locking: bool,
        reduction: Reduction,
        backward_passes_per_step: int,
        average_aggregated_gradients: bool,
        scale_local_gradients: bool,
    ) -> None:
        name = name or f"Distributed{type(optimizer).__name__}"
        super().__init__(optimizer, name, use_locking)
        self.process_set = reduction.process_set
        self._reducer = GradientReducer(name, reduction)
        self._local = LocalVariables(reduction.process_set, scale_local_gradients)
        self._aggregation: Optional[LocalGradientAggregationHelper] = None
        if backward_passes_per_step > 1:
            if tf.executing_eagerly():
                raise ValueError(
                    "backward_passes_per_step > 1 needs graph mode with an optimizer of tf.compat.v1.train: use one of Keras"
                )
            self._aggregation = LocalGradientAggregationHelper(
                backward_passes_per_step,
                self._reducer.reduce,
                reduction.sparse_as_dense,
                average_aggregated_gradients,
                rank(),
                LocalGradientAggregationHelper._OPTIMIZER_TYPE_LEGACY,
                reduction.process_set,
                scale_local_gradients,
                name,
            )

    def register_local_var(self, var: Any) -> None:
        """Excludes `var`, a variable that each rank has for itself, from the reduction; see `scale_local_gradients`."""
        (self._aggregation or self)._local.add(var)

    @not_converted
    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Computes gradients as tf.compat.v1.train.Optimizer does, and reduces them."""
        pairs = super().compute_gradients(*args, **kwargs)
        grads, variables = [grad for grad, _ in pairs], [variable for _, variable in pairs]
        if self._aggregation is not None:
            grads = self._aggregation.compute_gradients(grads, variables)
        else:
            grads = self._local.reduce_others(grads, variables, self._reducer.reduce)
        return list(zip(grads, variables))

    @not_converted
    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """Applies gradients as tf.compat.v1.train.Optimizer does; of `backward_passes_per_step` runs only the last one updates the
        variables.
        """
        pairs = list(grads_and_vars)

        def apply() -> Any:
            return super(DistributedOptimizerV1, self).apply_gradients(pairs, global_step, name)

        if self._aggregation is None:
            return apply()
        return self._aggregation.apply_gradients(apply, self._optimizer, pairs, global_step=global_step)
