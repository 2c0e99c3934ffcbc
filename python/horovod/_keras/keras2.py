"""Distributed optimizers of Keras 2: the new ones, and the legacy ones of Keras 2.10 and before.

Gradients are reduced in compute_gradients, as Horovod does, or else when they are applied: before a LossScaleOptimizer around
the optimizer checks whether they are finite. Each gradient is reduced once.
"""

from typing import Any, Callable, Optional

import tensorflow as tf

from horovod._keras.accumulation import Accumulation, as_dense
from horovod._keras.distributed import DistributedOptimizerMixin
from horovod.common.process_sets import ProcessSet
from horovod.tensorflow import reduced_gradients

Pairs = list[tuple[Any, Any]]  # of gradients and variables

_GRAPHS = (
    "backward_passes_per_step > 1 needs eager execution or tf.function: it is not supported in graphs of tf.compat.v1."
)


class Keras2Optimizer(DistributedOptimizerMixin):
    """The common base for the new and the legacy optimizers."""

    iterations: Any
    _is_wrapped_by_loss_scale_optimizer = False
    _accumulation: Optional[Accumulation] = None

    def _hvd_distribute(self) -> None:
        super()._hvd_distribute()
        passes = self._hvd_settings.backward_passes_per_step
        if passes > 1:
            if not tf.compat.v1.executing_eagerly_outside_functions():
                raise ValueError(_GRAPHS)
            self._accumulation = Accumulation(passes, self._hvd_settings.average_aggregated_gradients)

    def _hvd_open_group(self) -> int:
        if self._accumulation is None or int(self._accumulation.counter) == 0:
            return 0
        return self._hvd_settings.backward_passes_per_step

    def _hvd_computed(self, pairs: Pairs) -> Pairs:
        """Returns the result of compute_gradients."""
        if self._hvd_may_skip_alone():
            return pairs  # still scaled, by a factor that changes
        reduced = self._hvd_reduced(pairs)
        # With a loss scale around this optimizer they come back unscaled, so as other tensors.
        is_scaled = self._is_wrapped_by_loss_scale_optimizer
        reduced_gradients.note(reduced, None if is_scaled else self._hvd_averages_over())
        return reduced

    def _hvd_aggregated(self, pairs: Pairs) -> Pairs:
        """Returns the gradients to be applied."""
        places = [place for place, is_done in enumerate(self._hvd_taken(pairs)) if not is_done]
        others = [pairs[place] for place in places]
        if any(grad is not None for grad, _ in others):
            others = self._hvd_reduced_alike(others) if self._hvd_may_skip_alone() else self._hvd_reduced(others)
        results = list(pairs)
        for place, pair in zip(places, others):
            results[place] = pair
        return results

    def _hvd_taken(self, pairs: Pairs) -> list[bool]:
        """Returns which of the gradients have been reduced, and clears these marks; see :mod:`horovod.tensorflow.reduced_gradients`."""
        return reduced_gradients.take(pairs, self._hvd_averages_over())

    def _hvd_averages_over(self) -> Optional[ProcessSet]:
        """Returns the process set over which gradients are averaged; None if another reduction of an average might change it."""
        return None if self._accumulation is not None else self._hvd.averages_over()

    def _hvd_may_skip_alone(self) -> bool:
        """Returns whether a loss scale around this optimizer might skip a step on this rank only."""
        return self._is_wrapped_by_loss_scale_optimizer and self._hvd.may_skip_alone(self._accumulation is not None)

    def _hvd_reduced_alike(self, pairs: Pairs) -> Pairs:
        """Returns reduced gradients. All of them are NaN if those of any rank are not finite, so that all ranks skip the step."""
        finite = self._hvd.reducer.agreed(all_finite(grad for grad, _ in pairs))
        return [(poisoned_unless(finite, grad), variable) for grad, variable in self._hvd_reduced(pairs, finite)]

    def _hvd_reduced(self, pairs: Pairs, counts: Any = True) -> Pairs:
        """Returns reduced gradients, or the sums of passes so far; `counts`: whether this pass is accumulated."""
        grads = [grad for grad, _ in pairs]
        variables = [variable for _, variable in pairs]
        if self._accumulation is None:
            return list(zip(self._hvd.reduce(grads, variables), variables))
        grads = [as_dense(grad, self._hvd_settings.sparse_as_dense) for grad in grads]
        return list(zip(self._accumulation.add(grads, variables, self._hvd.reduce, counts), variables))

    def _hvd_apply(self, pairs: Pairs, apply: Callable[[], Any]) -> Any:
        """Calls `apply` if the gradients are those of enough passes."""
        self._hvd_taken(pairs)
        if self._accumulation is None:
            return apply()

        def applied() -> Any:
            apply()
            return tf.identity(self.iterations)

        def counted() -> Any:
            return tf.identity(self.iterations.assign_add(1))

        return tf.cond(self._accumulation.is_complete(), applied, counted)


class NewOptimizer(Keras2Optimizer):
    """The base for classes derived from keras.optimizers.Optimizer of Keras 2.11 and later."""

    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = None) -> Pairs:
        return self._hvd_computed(super().compute_gradients(loss, var_list, tape))  # type: ignore[misc]

    def aggregate_gradients(self, grads_and_vars: Any) -> Pairs:
        return self._hvd_aggregated(list(super().aggregate_gradients(grads_and_vars)))  # type: ignore[misc]

    def apply_gradients(
        self, grads_and_vars: Any, name: Any = None, skip_gradients_aggregation: bool = False, **kwargs: Any
    ) -> Any:
        base = super().apply_gradients  # type: ignore[misc]
        skips = skip_gradients_aggregation or not kwargs.get("experimental_aggregate_gradients", True)
        pairs = list(grads_and_vars) if skips else self.aggregate_gradients(grads_and_vars)
        return self._hvd_apply(pairs, lambda: base(pairs, name=name, skip_gradients_aggregation=True))


class LegacyOptimizer(Keras2Optimizer):
    """The base for classes derived from keras.optimizers.legacy.Optimizer."""

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None) -> Pairs:
        return self._hvd_computed(super()._compute_gradients(loss, var_list, grad_loss, tape))  # type: ignore[misc]

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        variables = tf.nest.flatten(params)
        grads = super().get_gradients(loss, params)  # type: ignore[misc]
        return [grad for grad, _ in self._hvd_computed(list(zip(grads, variables)))]

    def _aggregate_gradients(self, grads_and_vars: Any) -> Pairs:
        return self._hvd_aggregated(list(super()._aggregate_gradients(grads_and_vars)))  # type: ignore[misc]

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        base = super().apply_gradients  # type: ignore[misc]
        pairs = list(grads_and_vars)
        if self._accumulation is None:
            if not kwargs.get("experimental_aggregate_gradients", True):
                self._hvd_taken(pairs)
            return base(pairs, *args, **kwargs)
        if kwargs.pop("experimental_aggregate_gradients", True):
            # Before the base class applies them, because the script may not ask it to.
            pairs = self._aggregate_gradients(super()._transform_unaggregated_gradients(pairs))  # type: ignore[misc]
        # An operation in a graph, as a loss scale around it expects.
        return tf.group(
            self._hvd_apply(pairs, lambda: base(pairs, *args, experimental_aggregate_gradients=False, **kwargs))
        )


def all_finite(grads: Any) -> Any:
    """Returns whether all elements of the gradients are finite, as a boolean scalar."""
    values = [grad.values if isinstance(grad, tf.IndexedSlices) else grad for grad in grads if grad is not None]
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(value)) for value in values])


def poisoned_unless(finite: Any, grad: Any) -> Any:
    """Returns `grad` if the condition is true, and NaN otherwise."""
    if grad is None:
        return None
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(poisoned_unless(finite, grad.values), grad.indices, grad.dense_shape)
    return tf.where(finite, grad, tf.constant(float("nan"), grad.dtype))
