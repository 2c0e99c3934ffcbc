"""Accumulation of gradients over several backward passes, for optimizers of Keras 2."""

from collections.abc import Sequence
from typing import Any, Callable

import tensorflow as tf

_SPARSE = "a gradient is tf.IndexedSlices, which can't be accumulated over backward passes: set sparse_as_dense=True"


def as_dense(grad: Any, sparse_as_dense: bool) -> Any:
    """Returns a gradient as a tensor. Raises ValueError for tf.IndexedSlices that must not be converted."""
    if not isinstance(grad, tf.IndexedSlices):
        return grad
    if not sparse_as_dense:
        raise ValueError(_SPARSE)
    return tf.convert_to_tensor(grad)


class Accumulation:
    """Accumulates gradients on this rank until there are those of enough passes.

    Args:
      passes: the number of passes per update.
      averages: whether the reduced sums are divided by `passes`.

    Attributes:
      counter: the number of passes since the last update, a tf.Variable.
    """

    def __init__(self, passes: int, averages: bool) -> None:
        self._passes = passes
        self._averages = averages
        self._sums: dict[int, Any] = {}  # by id of their variable
        self._variables: dict[int, Any] = {}  # kept, so that no other gets the id
        with tf.init_scope():
            self.counter = tf.Variable(0, trainable=False, dtype=tf.int64)

    def add(
        self,
        grads: Sequence[Any],
        variables: Sequence[Any],
        reduce: Callable[[Sequence[Any], Sequence[Any]], list[Any]],
        counts: Any = True,
    ) -> list[Any]:
        """Adds gradients and returns the sums; they are reduced if they are complete. `counts`, a boolean scalar: if it is false,
        nothing is added.
        """
        places = [place for place, grad in enumerate(grads) if grad is not None]
        sums = [self._sum_of(variables[place], grads[place]) for place in places]
        addends = [grads[place] if counts is True else tf.where(counts, grads[place], 0) for place in places]
        added = [tf.identity(total.assign_add(addend)) for total, addend in zip(sums, addends)]

        def complete() -> list[Any]:
            reduced = reduce(added, [variables[place] for place in places])
            with tf.control_dependencies(reduced):
                self.clear()
            return [grad / self._passes if self._averages else grad for grad in reduced]

        is_last = tf.equal(self.counter.assign_add(tf.cast(counts, tf.int64)), self._passes)
        chosen = tf.cond(is_last, complete, lambda: added)
        results: list[Any] = [None] * len(grads)
        for place, grad in zip(places, tf.nest.flatten(chosen)):
            results[place] = grad
        return results

    def is_complete(self) -> Any:
        """Returns whether :meth:`add` has returned reduced gradients, which are to be applied."""
        return tf.equal(self.counter, 0)

    def clear(self) -> None:
        """Drops the passes since the last update."""
        self.counter.assign(0)
        for total in self._sums.values():
            total.assign(tf.zeros_like(total))

    def _sum_of(self, variable: Any, grad: Any) -> Any:
        key = id(variable)
        if key not in self._sums:
            self._variables[key] = variable
            with tf.init_scope():
                self._sums[key] = tf.Variable(tf.zeros(grad.shape, grad.dtype), trainable=False)
        return self._sums[key]
