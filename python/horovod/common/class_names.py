"""Names of classes, for messages."""

from typing import Any


def class_of(value: Any) -> str:
    """The class of `value`, with its module: torch.optim.sgd.SGD."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
