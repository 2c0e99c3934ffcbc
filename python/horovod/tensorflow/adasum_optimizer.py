"""The distributed optimizer around one of tf.compat.v1, which reduces its steps by Adasum.

Source: Maleki et al., Scaling Distributed Training with Adaptive Summation, 2020.
"""

from typing import Any, Optional

from horovod.common import process_sets
from horovod.common.util import is_elastic
from horovod.tensorflow._library import not_converted, tf
from horovod.tensorflow.gradients import GradientReducer, Reduction
from horovod.tensorflow.optimizer_v1 import Optimizer, OptimizerAround


class DistributedAdasumOptimizer(OptimizerAround):
    """Lets the inner optimizer step on this rank and, every `backward_passes_per_step` steps, combines the ranks' changes of the
    variables by Adasum. See :func:`horovod.tensorflow.DistributedOptimizer`.
    """

    def __init__(
        self,
        optimizer: Any,
        name: Optional[str],
        use_locking: bool,
        reduction: Reduction,
        backward_passes_per_step: int,
    ) -> None:
        super().__init__(optimizer, name or f"DistributedDelta{type(optimizer).__name__}", use_locking)
        self.process_set = reduction.process_set
        self._reducer = GradientReducer(self.get_name(), reduction._replace(groups=1))
        self._passes = backward_passes_per_step
        self._counter: Any = None  # of steps since the last reduction

    @not_converted
    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """Applies gradients as tf.compat.v1.train.Optimizer does, and combines the ranks' steps."""
        pairs = list(grads_and_vars)
        if not is_elastic() and not process_sets.takes_part(self.process_set):
            return super().apply_gradients(pairs, global_step, name)
        variables = [variable for grad, variable in pairs if grad is not None]
        slots = [self._zeros_slot(variable, "delta_start", self.get_name()) for variable in variables]
        with tf.control_dependencies(self._begin(slots, variables)):
            stepped = super().apply_gradients(pairs, global_step, name)
        with tf.control_dependencies([] if stepped is None else [stepped]):
            counter = self._counter.assign((self._counter.read_value() + 1) % self._passes)
            starts = [slot.read_value() for slot in slots]
            values = [variable.read_value() for variable in variables]
        reduced = tf.cond(
            tf.equal(counter, 0),
            lambda: tuple(self._put_together(starts, values, variables)),
            lambda: tuple(values),
        )
        done = [variable.assign(value) for variable, value in zip(variables, reduced)]
        return None if tf.executing_eagerly() else tf.group(*done)

    def get_slot(self, var: Any, name: str) -> Any:
        """Returns this optimizer's slot "delta_start", or a slot of the inner optimizer."""
        own = Optimizer.get_slot(self, var, name)
        return super().get_slot(var, name) if own is None else own

    def get_slot_names(self) -> list[str]:
        """Returns the names of this optimizer's and the inner optimizer's slots."""
        return [*Optimizer.get_slot_names(self), *super().get_slot_names()]

    def _begin(self, slots: list[Any], variables: list[Any]) -> list[Any]:
        """Records the variables' values before the first of the steps that are combined."""
        if self._counter is None:
            with tf.init_scope():
                zero, name = tf.zeros([], tf.int64), self.get_name() + "/step_count"
                self._counter = tf.compat.v1.Variable(zero, trainable=False, use_resource=True, name=name)
        is_first = tf.equal(self._counter.read_value(), 0)
        return [
            slot.assign(tf.where(is_first, variable.read_value(), slot.read_value()))
            for slot, variable in zip(slots, variables)
        ]

    def _put_together(self, starts: list[Any], values: list[Any], variables: list[Any]) -> list[Any]:
        steps = [value - start for value, start in zip(values, starts)]
        return [start + step for start, step in zip(starts, self._reducer.reduce(steps, variables))]
