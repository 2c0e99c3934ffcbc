"""Distributed optimizers of Keras 3, on all of its backends.

Gradients are reduced as they are applied, before anything reads them: clipping, weight decay, and the finite check of a
LossScaleOptimizer around the optimizer. The latter is Keras's own class. compile() puts it around an optimizer by itself if
a model computes in mixed_float16: see :func:`reduce_before_loss_scale`.
"""

import functools
from collections.abc import Sequence
from typing import Any, Callable

from horovod._keras.distributed import DistributedOptimizerMixin

_DISTRIBUTION = (
    "keras.distribution and hvd.DistributedOptimizer would both reduce the gradients: use one of them, e.g. "
    "keras.distribution.set_distribution(None)."
)


def check_no_distribution() -> None:
    """Raises ValueError if Keras distributes models itself."""
    import keras

    if keras.distribution.distribution() is not None:
        raise ValueError(_DISTRIBUTION)


class _CallableList(list[Any]):
    """Variables of an optimizer, for scripts that call `optimizer.variables()` as in Keras 2."""

    def __call__(self) -> list[Any]:
        return self


class NamesOfKeras2:
    """Attributes of an optimizer that scripts written for Keras 2 use."""

    learning_rate: Any

    @property
    def lr(self) -> Any:
        return self.learning_rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    @property
    def variables(self) -> Any:
        return _CallableList(super().variables)  # type: ignore[misc]


class Keras3Optimizer(NamesOfKeras2, DistributedOptimizerMixin):
    """The base for classes derived from keras.optimizers.Optimizer of Keras 3."""

    built: bool
    gradient_accumulation_steps: Any
    _iterations: Any
    _trainable_variables: Sequence[Any]

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        grads = list(grads)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        variables = self._trainable_variables if trainable_variables is None else trainable_variables
        if not self._hvd.all_done and len(variables) == len(grads):
            grads = self._hvd_reduced(grads, variables)
        super().apply(grads, trainable_variables)  # type: ignore[misc]

    def _hvd_reduced(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Returns the gradients for the base class. If the base class accumulates those of several steps, the sums are reduced instead,
        in :meth:`_clip_gradients`, except for gradients that overwrite their variable, such as float8's scales.
        """
        check_no_distribution()
        present = [i for i, grad in enumerate(grads) if grad is not None]
        if self._hvd.backend == "tensorflow":
            present = self._hvd_not_taken(present, grads, variables)
        replacing = [i for i in present if getattr(variables[i], "overwrite_with_gradient", False)]
        summed = [i for i in present if i not in replacing]
        results = list(grads)
        _put(results, replacing, self._hvd.reducer.largest([grads[i] for i in replacing]))
        if self.gradient_accumulation_steps:
            self._hvd.pending = {id(variables[i]) for i in summed}
        else:
            _put(results, summed, self._hvd.reduce([grads[i] for i in summed], [variables[i] for i in summed]))
        return results

    def _hvd_not_taken(self, places: Sequence[int], grads: Sequence[Any], variables: Sequence[Any]) -> list[int]:
        """Returns the places at which gradients are not reduced yet."""
        from horovod.tensorflow import reduced_gradients

        taken = reduced_gradients.take(((grads[i], variables[i]) for i in places), self._hvd.averages_over())
        return [i for i, done in zip(places, taken) if not done]

    # With accumulation.

    def _hvd_open_group(self) -> int:
        passes = self.gradient_accumulation_steps or 1
        return passes if passes > 1 and int(self._iterations) % passes else 0

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        self._hvd.applied = list(trainable_variables)
        super()._backend_apply_gradients(grads, trainable_variables)  # type: ignore[misc]

    def _clip_gradients(self, grads: Any) -> Any:
        if self.gradient_accumulation_steps and not self._hvd.all_done:
            grads = self._hvd_reduced_at_update(list(grads))
        return super()._clip_gradients(grads)  # type: ignore[misc]

    def _hvd_reduced_at_update(self, grads: list[Any]) -> list[Any]:
        """Reduces gradients. The base class calls it at steps that update the variables; on JAX at every step."""
        if self._hvd.backend != "jax":
            return self._hvd_reduced_sums(grads)
        import jax

        is_update = (self._iterations + 1) % self.gradient_accumulation_steps == 0
        reduced: list[Any] = jax.lax.cond(is_update, self._hvd_reduced_sums, lambda grads: grads, grads)
        return reduced

    def _hvd_reduced_sums(self, grads: list[Any]) -> list[Any]:
        """Reduces `grads`, which are sums divided by the number of steps."""
        variables, results = self._hvd.applied, list(grads)
        places = [i for i, variable in enumerate(variables) if id(variable) in self._hvd.pending]
        _put(results, places, self._hvd.reduce([grads[i] for i in places], [variables[i] for i in places]))
        passes = self._hvd_settings.backward_passes_per_step
        if passes == 1 or self._hvd_settings.average_aggregated_gradients:
            return results
        return [grad * passes for grad in results]


def _put(results: list[Any], places: Sequence[int], values: Sequence[Any]) -> None:
    for i, value in zip(places, values):
        results[i] = value


class LossScale(NamesOfKeras2):
    """The base for Keras's LossScaleOptimizer around a :class:`Keras3Optimizer`: all ranks see the same gradients, and skip the same
    steps.
    """

    inner_optimizer: Any
    _trainable_variables: Sequence[Any]

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        base = super().apply  # type: ignore[misc]
        variables = self._trainable_variables if trainable_variables is None else list(trainable_variables)
        self._hvd_reduced(grads, variables, lambda grads: base(grads, trainable_variables))

    def stateless_apply(self, optimizer_variables: Any, grads: Any, trainable_variables: Any) -> Any:
        base = super().stateless_apply  # type: ignore[misc]
        return self._hvd_reduced(
            grads, self._trainable_variables, lambda grads: base(optimizer_variables, grads, trainable_variables)
        )

    def _hvd_reduced(self, grads: Any, variables: Sequence[Any], apply: Callable[[list[Any]], Any]) -> Any:
        """Calls `apply` with reduced gradients. If gradients of several steps are accumulated, the inner optimizer reduces."""
        inner, grads = self.inner_optimizer, list(grads)
        if inner.gradient_accumulation_steps or len(variables) != len(grads):
            return apply(grads)
        grads = inner._hvd_reduced(grads, variables)
        with inner._hvd.done():
            return apply(grads)

    def check_finite(self, grads: Any) -> Any:
        finite = super().check_finite(grads)  # type: ignore[misc]
        inner = self.inner_optimizer
        if inner._hvd.may_skip_alone(bool(inner.gradient_accumulation_steps)):
            finite = inner._hvd.reducer.agreed(finite)
        return finite

    def register_local_var(self, var: Any) -> None:
        """Does what the inner optimizer's method does."""
        self.inner_optimizer.register_local_var(var)


def reduce_before_loss_scale(make_class: Callable[[type], type]) -> None:
    """Replaces each new LossScaleOptimizer around a :class:`Keras3Optimizer`, made by compile() or by scripts, by one that
    `make_class` makes of its class and :class:`LossScale`.
    """
    import keras

    scaling = keras.optimizers.LossScaleOptimizer
    base = scaling.__init__
    if hasattr(base, "_hvd_base"):
        return

    @functools.wraps(base)
    def init(self: Any, inner_optimizer: Any, *args: Any, **kwargs: Any) -> None:
        base(self, inner_optimizer, *args, **kwargs)
        if isinstance(inner_optimizer, Keras3Optimizer) and not isinstance(self, LossScale):
            self.__class__ = make_class(type(self))

    init._hvd_base = base  # type: ignore[attr-defined]
    scaling.__init__ = init
