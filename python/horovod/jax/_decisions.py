"""The arguments of an update by which an optimizer decides, reduced so that all ranks decide alike."""

import functools
from typing import Any, Callable

from horovod.jax._library import jax

Reduce = Callable[[Any], Any]


def marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function`, whose results are known to be reduced from now on."""
    function._hvd_reduced = True  # type: ignore[attr-defined]
    return function


def reduced(extra: dict[str, Any], known: dict[str, Any], reduce: Reduce, average: Reduce) -> dict[str, Any]:
    """Returns the further arguments of an update, of which the loss, its gradient and their functions are those of this rank's batch.

    Args:
      extra: the arguments, by name.
      known: those that are reduced already.
      reduce: reduces as gradients are.
      average: averages.

    Raises:
      ValueError: an argument is a function of which nobody knows what it computes.
    """
    own = {name: extra[name] for name in ("value", "grad") if extra.get(name) is not None and name not in known}
    numbers = {name: item for name, item in extra.items() if name not in ("value", "grad") and _is_scalar(item)}
    functions = {name: _reduced_function(name, item, reduce, average) for name, item in extra.items() if callable(item)}
    return {**extra, **known, **reduce(own), **average(numbers), **functions}


def _is_scalar(item: Any) -> bool:
    """Returns whether an argument is an array of one floating value, such as a loss. Numbers of Python may be settings."""
    return getattr(item, "shape", None) == () and jax.numpy.issubdtype(item.dtype, jax.numpy.floating)


def _reduced_function(name: str, function: Callable[..., Any], reduce: Reduce, average: Reduce) -> Callable[..., Any]:
    if getattr(function, "_hvd_reduced", False):
        return function
    if name in ("value_fn", "obj_fn"):
        return _reduced_loss(function, reduce, average)
    if name == "grad_fn":
        return marked(functools.wraps(function)(lambda *args, **kwargs: reduce(function(*args, **kwargs))))
    raise ValueError(
        f"The argument {name} of hvd.DistributedOptimizer's update is a function. If it computes from this rank's batch, the "
        "optimizers of the ranks would drift apart: pass a loss as value_fn or obj_fn, its gradient as grad_fn, or a function "
        "that hvd.grad or hvd.value_and_grad has made."
    )


def _reduced_loss(function: Callable[..., Any], reduce: Reduce, average: Reduce) -> Callable[..., Any]:
    """Returns the function of all ranks' batches. It can be differentiated in both modes any number of times with respect to its
    first argument, which all ranks share.
    """

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def shared(params: Any) -> Any:
        return params

    @shared.defjvp  # type: ignore[untyped-decorator]
    def tangent_of(params: Any, tangents: Any) -> Any:
        # All ranks have the same tangent, so this changes nothing. Its transpose averages what each rank's batch adds to the gradient.
        return params[0], average(tangents[0])

    @functools.wraps(function)
    def wrapper(params: Any, *args: Any, **kwargs: Any) -> Any:
        return reduce(function(shared(params), *args, **kwargs))

    return marked(wrapper)
