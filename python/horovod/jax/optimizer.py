"""Gradients that are reduced over the ranks, by an optax optimizer or where they are computed."""

import functools
import sys
from typing import Any, Callable

from horovod.common import process_sets
from horovod.common.collective_kinds import check_reduction
from horovod.common.interface import Average, ProcessSet, global_process_set
from horovod.common.optimizer_arguments import check_compression, check_predivide
from horovod.jax import _around, _decisions
from horovod.jax._library import jax
from horovod.jax._operations import allreduce
from horovod.jax.compression import Compression

__all__ = ["DistributedOptimizer", "grad", "value_and_grad"]


def _reducer(
    op: int, gradient_predivide_factor: float, process_set: ProcessSet, compression: Any = Compression.none
) -> Callable[[Any], Any]:
    """Returns a function that reduces a tree of gradients as one group."""
    check_reduction(op)
    process_sets.known(process_set)
    check_predivide(op, gradient_predivide_factor)
    check_compression(compression)
    return functools.partial(
        allreduce,
        op=op,
        prescale_factor=1.0 / gradient_predivide_factor,
        postscale_factor=gradient_predivide_factor,
        process_set=process_set,
        compression=compression,
    )


def DistributedOptimizer(
    optimizer: Any,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: Any = Compression.none,
) -> Any:
    """Returns an optax optimizer that reduces the ranks' gradients, as one group, before it computes `optimizer`'s updates. It
    works inside and outside of jit.

    It can be in optax.MultiSteps, for the gradients of several batches. optax 0.2 calls it with each batch; to reduce once, add
    the gradients up and update with their mean.

    The arguments of an update by which optax.lbfgs, line searches, optax.contrib.reduce_on_plateau, sophia and sam decide (`value`,
    `grad`, `value_fn`, `obj_fn` and `grad_fn`) are those of this rank's batch, and are reduced as the gradients are. Other scalars
    of a floating type are averaged. Other functions must be made by :func:`grad` or :func:`value_and_grad`.

    Args:
      optimizer: an optax.GradientTransformation, e.g. optax.adam(1e-3).
      op: the reduction.
      gradient_predivide_factor: with hvd.Average, gradients are divided by this factor before the sum, and by
        size / factor after it.
      process_set: the ranks that take part.
      compression: how gradients are compressed for the reduction.

    Returns:
      An optax.GradientTransformation.

    Raises:
      TypeError: `optimizer` is not an optax optimizer.
      ValueError: another argument is invalid, or `optimizer` is a distributed optimizer already; at an update, a transformation
        outside of it decides by the values of this rank's batch, or an argument is a function whose results are not reduced.
    """
    if not all(hasattr(optimizer, name) for name in ("init", "update", "_replace")):
        advice = ": call its gradient_transformation()" if hasattr(optimizer, "gradient_transformation") else ""
        raise TypeError(
            f"hvd.DistributedOptimizer needs an optax.GradientTransformation, got {type(optimizer)}{advice}."
        )
    if hasattr(optimizer.update, "_hvd_reduce"):
        raise ValueError("The optimizer is a hvd.DistributedOptimizer already.")
    reduce = _reducer(op, gradient_predivide_factor, process_set, compression)
    exact = reduce if compression is Compression.none else _reducer(op, gradient_predivide_factor, process_set)
    average = exact if op == Average else _reducer(Average, 1.0, process_set)

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        _around.check(sys._getframe(1))
        reduced = reduce(updates)
        known = {"grad": reduced} if extra.get("grad") is updates else {}
        return optimizer.update(reduced, state, params, **_decisions.reduced(extra, known, exact, average))

    update._hvd_reduce = reduce  # type: ignore[attr-defined]
    return optimizer._replace(update=update)  # of the same kind, for other transformations


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: Any = Compression.none,
) -> Callable[..., Any]:
    """Does what jax.value_and_grad does, and reduces the gradients over the ranks, as one group. The value is this rank's. No
    :func:`DistributedOptimizer` is needed then.

    Args:
      fun: the function.
      argnums, has_aux: as for jax.value_and_grad.
      op, gradient_predivide_factor, process_set, compression: as for :func:`DistributedOptimizer`.

    Returns:
      The function that returns value and gradients.

    Example:
      >>> value, gradient = hvd.value_and_grad(lambda x: x * x)(3.0)
      >>> float(value), float(gradient)
      (9.0, 6.0)
    """
    local = jax.value_and_grad(fun, argnums, has_aux)
    reduce = _reducer(op, gradient_predivide_factor, process_set, compression)

    @functools.wraps(local)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradients = local(*args, **kwargs)
        return value, reduce(gradients)

    return _decisions.marked(wrapper)


def grad(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """Does what jax.grad does, and reduces the gradients over the ranks, as one group.

    Args:
      fun: the function.
      argnums, has_aux: as for jax.grad.
      kwargs: further arguments, as for :func:`value_and_grad`.

    Returns:
      The function that returns the gradients.

    Example:
      >>> float(hvd.grad(lambda x: x * x)(3.0))
      6.0
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @functools.wraps(both)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return _decisions.marked(wrapper)
