"""Skips the batches of an epoch that were done before fit() was called."""

from typing import Any

from horovod._keras.packages import backend_of, package_of


def skip_batches(model: Any, count: int) -> None:
    """Makes fit(), which is about to begin an epoch, read the next `count` batches without training on them."""
    if count <= 0:
        return
    train = model.train_function
    stateless = backend_of(package_of(model)) == "jax"
    at_once = _steps_per_execution(model)
    left = count

    def skipping(*arguments: Any) -> Any:
        nonlocal left
        _take(arguments[-1], at_once)
        left -= at_once
        if left <= 0:
            model.train_function = train
        return ({}, arguments[0]) if stateless else {}

    model.train_function = skipping


def _take(batches: Any, count: int) -> None:
    if isinstance(batches, list):  # they are there already
        return
    for _ in range(count):
        next(batches)


def _steps_per_execution(model: Any) -> int:
    """Returns how many batches a call of the train function processes."""
    if hasattr(model, "steps_per_execution"):
        return int(model.steps_per_execution)
    variable = getattr(model, "_steps_per_execution", None)  # of Keras 2
    return 1 if variable is None else int(variable.numpy())
