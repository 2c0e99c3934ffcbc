"""Gradients that are reduced over the ranks: by an optimizer of optax, or where they are made."""

import functools
from typing import Any, Callable

from horovod.common import process_sets
from horovod.common.collective_kinds import check_reduction
from horovod.common.interface import Average, ProcessSet, global_process_set
from horovod.common.optimizer_arguments import check_compression, check_predivide
from horovod.jax._library import jax
from horovod.jax._operations import allreduce
from horovod.jax.compression import Compression

__all__ = ["DistributedOptimizer", "grad", "value_and_grad"]


def _reducer(
    op: int, gradient_predivide_factor: float, process_set: ProcessSet, compression: Any
) -> Callable[[Any], Any]:
    """A function that reduces a tree of gradients as one group."""
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
    """Returns an optax.GradientTransformation whose updates are those of `optimizer` for the ranks'
    gradients, reduced as one group. It works within jit and outside.

    To apply several batches at once, give it to optax.MultiSteps: gradients are then reduced at each step that
    is applied.

    Args:
      optimizer: an optax.GradientTransformation, e.g. optax.adam(1e-3).
      op: the reduction.
      gradient_predivide_factor: with op=Average, the part of the division that is done before the sum.
      process_set: the ranks that take part.
      compression: for the time of the reduction.

    Raises TypeError if `optimizer` is none of optax, ValueError for bad arguments, and for an optimizer that is
    distributed already.
    """
    if not all(hasattr(optimizer, name) for name in ("init", "update", "_replace")):
        raise TypeError(f"hvd.DistributedOptimizer needs an optax.GradientTransformation, got {type(optimizer)}.")
    if hasattr(optimizer.update, "_hvd_reduce"):
        raise ValueError("The optimizer is a hvd.DistributedOptimizer already.")
    reduce = _reducer(op, gradient_predivide_factor, process_set, compression)

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        return optimizer.update(reduce(updates), state, params, **extra)

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
    """jax.value_and_grad, but the gradients are reduced over the ranks, as one group. The value is this
    rank's. Further arguments as of :func:`DistributedOptimizer`, which is not needed then."""
    local = jax.value_and_grad(fun, argnums, has_aux)
    reduce = _reducer(op, gradient_predivide_factor, process_set, compression)

    @functools.wraps(local)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradients = local(*args, **kwargs)
        return value, reduce(gradients)

    return wrapper


def grad(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """jax.grad, but the gradients are reduced over the ranks; otherwise as :func:`value_and_grad`."""
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @functools.wraps(both)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapper
