"""Conversion of Keras's tensors and variables from and to numpy arrays."""

from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy

from horovod._keras.packages import backend_of, is_keras3, package_of


def array_of(value: Any, backend: str) -> numpy.ndarray:
    """Returns a tensor, or a value that can be converted to one, as a contiguous array."""
    if backend == "tensorflow":
        import tensorflow as tf

        if not tf.executing_eagerly():
            return numpy.array(value, order="C")
        return numpy.array(tf.convert_to_tensor(value).numpy(), order="C")
    import keras

    return numpy.array(keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(value)), order="C")


def tensor_of(array: numpy.ndarray, backend: str) -> Any:
    """Returns an array as a tensor of the backend; in graphs of tf.compat.v1 the array itself."""
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.convert_to_tensor(array) if tf.executing_eagerly() else array
    import keras

    return keras.ops.convert_to_tensor(array)


def values_of(owner: Any, variables: Sequence[Any]) -> list[numpy.ndarray]:
    """Returns the values of variables of `owner`, a model or an optimizer."""
    package = package_of(owner)
    if is_keras3(package):
        import keras

        return [numpy.asarray(keras.ops.convert_to_numpy(variable)) for variable in variables]
    return [numpy.asarray(value) for value in package.backend.batch_get_value(list(variables))]


def assign(owner: Any, variables: Sequence[Any], values: Sequence[numpy.ndarray]) -> None:
    """Assigns values to variables of `owner`.

    Raises ValueError if their number or shapes differ from the variables'.
    """
    have = [tuple(variable.shape) for variable in variables]
    get = [value.shape for value in values]
    if have != get:
        raise ValueError(
            f"{type(owner).__name__} has variables of the shapes {have}, and gets values of the shapes {get}: all "
            "ranks must make the same model and optimizer."
        )
    package = package_of(owner)
    if is_keras3(package):
        for variable, value in zip(variables, values):
            variable.assign(value)
    else:
        package.backend.batch_set_value(list(zip(variables, values)))


def variables_of_model(model: Any) -> list[Any]:
    """Returns all weights, trainable or not. The states of random generators are not included: each rank has its own."""
    return list(model.weights)


def variables_of_optimizer(optimizer: Any) -> list[Any]:
    """Returns all variables of an optimizer, including its learning rate and loss scale; none for None."""
    if optimizer is None:
        return []
    variables = optimizer.variables
    found = list(variables() if callable(variables) else variables)
    for other in _beside_variables(optimizer):
        if hasattr(other, "assign") and all(other is not variable for variable in found):
            found.append(other)
    return found


def _beside_variables(optimizer: Any) -> list[Any]:
    """Returns the variables of a Keras 2 optimizer that are not among its `variables`."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    others = [getattr(inner, "_learning_rate", None), getattr(inner, "_hyper", {}).get("learning_rate")]
    scale = getattr(optimizer, "_loss_scale", None)
    return [*others, getattr(scale, "current_loss_scale", None), getattr(scale, "counter", None)]


def accumulators_of(optimizer: Any) -> list[Any]:
    """Returns those variables of an optimizer of Keras 3 that hold the gradients that this rank accumulates for the next update."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return [variable for variable in getattr(inner, "_accumulated_gradients", ()) if variable is not None]


def drop_passes(optimizer: Any) -> None:
    """Drops the gradients of Keras 2 that are accumulated for the next update, because ranks need not be at the same pass."""
    accumulation = getattr(getattr(optimizer, "inner_optimizer", optimizer), "_accumulation", None)
    if accumulation is not None:
        accumulation.clear()


def take_from_training(model: Any) -> None:
    """Makes the variables readable and assignable while fit() runs on JAX, which keeps their values elsewhere. The next step
    begins with the values that the variables have then.
    """
    package = package_of(model)
    if package is not None and is_keras3(package) and backend_of(package) == "jax":
        model.jax_state_sync()


def leave_training(model: Any) -> None:
    """Drops the training state that a failed fit() on JAX has left in the model."""
    if hasattr(model, "_jax_state"):
        model._jax_state, model._jax_state_synced = None, True


def places_of(
    kind: str, variables: Sequence[Any], arrays: Sequence[Any], counts: Callable[[Any], bool] = lambda variable: True
) -> Iterator[tuple[str, str, Any]]:
    """Yields what :meth:`horovod.elastic.handlers.StateHandler.replicated` does, for the variables that `counts` says."""
    for number, (variable, array) in enumerate(zip(variables, arrays)):
        if counts(variable):
            name = getattr(variable, "path", None) or getattr(variable, "name", "")
            yield kind, f"[{number}] ({name})", array
