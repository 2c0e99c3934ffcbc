"""Names of classes, for messages."""

from typing import Any


def class_of(value: Any) -> str:
    """Returns the name of `value`'s class with its module, such as torch.optim.sgd.SGD."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
