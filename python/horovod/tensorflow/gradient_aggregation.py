"""Accumulation of gradients over several backward passes, for the optimizers of tf.compat.v1 in graphs."""

from collections.abc import Sequence
from typing import Any, Callable, Optional

from horovod.common.optimizer_arguments import checked_passes
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.tensorflow._library import tf
from horovod.tensorflow.gradients import LocalVariables, Reduce

#: The collection of a graph's counters of passes. Set to their initial values, they drop the sums so far.
PASS_COUNTERS = "horovod_pass_counters"

_SPARSE = "a gradient is tf.IndexedSlices, which can't be accumulated over backward passes: set sparse_as_dense=True"


class LocalGradientAggregationHelper:
    """Accumulates gradients on this rank and reduces the sums at each `backward_passes_per_step`-th run of the graph; an update
    is applied only then.

    Its variables are in the collection of local variables, which tf.compat.v1.local_variables_initializer initializes.

    Args:
      backward_passes_per_step: the number of runs per update.
      allreduce_func: a function that reduces gradients, given them and their variables.
      sparse_as_dense: whether tf.IndexedSlices are converted to dense tensors; others can't be accumulated.
      average_aggregated_gradients: whether the sums are divided by `backward_passes_per_step`.
      rank: not used; ranks may change.
      optimizer_type: _OPTIMIZER_TYPE_LEGACY; Keras's optimizers have their own accumulation.
      process_set, scale_local_gradients: see :class:`LocalVariables`.
      name: the optimizer's name.

    Raises:
      ValueError: an argument is invalid.
    """

    _OPTIMIZER_TYPE_KERAS = "optimizer_type_keras"
    _OPTIMIZER_TYPE_LEGACY = "optimizer_type_legacy"

    def __init__(
        self,
        backward_passes_per_step: int,
        allreduce_func: Reduce,
        sparse_as_dense: bool,
        average_aggregated_gradients: bool,
        rank: int,
        optimizer_type: str,
        process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True,
        name: str = "",
    ) -> None:
        if optimizer_type != self._OPTIMIZER_TYPE_LEGACY:
            raise ValueError("Gradients of Keras's optimizers are summed up by hvd.DistributedOptimizer alone.")
        self.backward_passes_per_step = checked_passes(backward_passes_per_step)
        self.average_aggregated_gradients = average_aggregated_gradients
        self.sparse_as_dense = sparse_as_dense
        self._reduce = allreduce_func
        self._local = LocalVariables(process_set, scale_local_gradients)
        self._scope = "aggregation_variables_" + name
        self.counter: Any = None  # passes since the last update
        self._sums: dict[int, Any] = {}  # variables, by the place of their gradient

    def register_local_var(self, var: Any) -> None:
        """Excludes a variable from the reduction: its gradients stay on this rank.

        Args:
          var: a variable that each rank has for itself.
        """
        self._local.add(var)

    def compute_gradients(self, grads: Sequence[Any], vars: Sequence[Any]) -> list[Any]:
        """Adds gradients to the sums.

        Args:
          grads: the gradients, with None for a variable without one.
          vars: the variables.

        Returns:
          The reduced sums at every last pass, otherwise `grads`.
        """
        dense = [self._dense(grad) for grad in grads]
        if self.counter is None:
            self._make_variables(dense)
        present = [place for place, grad in enumerate(dense) if grad is not None]
        is_first = tf.equal(self.counter.read_value(), 0)
        sums = [self._added(place, dense[place], is_first) for place in present]
        with tf.control_dependencies([is_first]):
            counter = self.counter.assign((self.counter.read_value() + 1) % self.backward_passes_per_step)
        with tf.control_dependencies([counter, *sums]):
            chosen = tf.cond(
                tf.equal(counter, 0),
                lambda: tuple(self._reduced(sums, [vars[place] for place in present])),
                lambda: tuple(tf.identity(dense[place]) for place in present),
            )
        results: list[Any] = [None] * len(dense)
        for place, grad in zip(present, chosen):
            results[place] = grad
        return results

    def apply_gradients(self, apply_grads_closure: Callable[[], Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns an operation that applies an update at every last pass, and otherwise only counts the pass in the keyword argument
        global_step.

        Args:
          apply_grads_closure: a function without arguments that applies the update.
          optimizer: the optimizer, whose attribute iterations is counted too.
          args: the first is the list of pairs of gradient and variable.
          kwargs: global_step is used.
        """
        pairs = list(args[0])
        with tf.control_dependencies([grad for grad, _ in pairs if grad is not None]):
            is_last = tf.equal(self.counter.read_value(), 0)
            return tf.cond(
                is_last,
                lambda: _done_after(apply_grads_closure()),
                lambda: _done_after(_counted(optimizer, kwargs.get("global_step"))),
            )

    def _dense(self, grad: Any) -> Any:
        if not isinstance(grad, tf.IndexedSlices):
            return grad
        if not self.sparse_as_dense:
            raise ValueError(_SPARSE)
        return tf.convert_to_tensor(grad)

    def _make_variables(self, grads: Sequence[Any]) -> None:
        with tf.init_scope(), tf.name_scope(self._scope):
            self.counter = _local_variable(tf.zeros([], tf.int32), "counter")
            tf.compat.v1.add_to_collection(PASS_COUNTERS, self.counter)
            for place, grad in enumerate(grads):
                if grad is not None:
                    self._sums[place] = _local_variable(tf.zeros(grad.shape, grad.dtype), str(place))

    def _added(self, place: int, grad: Any, is_first: Any) -> Any:
        sum_before = self._sums[place]
        return sum_before.assign(tf.where(is_first, grad, sum_before.read_value() + grad))

    def _reduced(self, sums: list[Any], variables: list[Any]) -> list[Any]:
        reduced = self._local.reduce_others(sums, variables, self._reduce)
        if self.average_aggregated_gradients:
            return [grad / self.backward_passes_per_step for grad in reduced]
        return reduced


def _local_variable(initial: Any, name: str) -> Any:
    collections = [tf.compat.v1.GraphKeys.LOCAL_VARIABLES]
    return tf.compat.v1.Variable(initial, trainable=False, collections=collections, name=name, use_resource=True)


def _counted(optimizer: Any, global_step: Optional[Any]) -> list[Any]:
    """Returns operations that count a pass without an update."""
    counters = [global_step, getattr(optimizer, "iterations", None)]
    return [counter.assign_add(tf.ones([], counter.dtype)) for counter in counters if counter is not None]


def _done_after(operations: Any) -> Any:
    """Returns a constant that depends on `operations`, so that both branches of a condition have the same type."""
    with tf.control_dependencies(tf.nest.flatten(operations)):
        return tf.constant(True)
