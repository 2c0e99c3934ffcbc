"""Small helper functions for actors."""

from collections.abc import Iterable
from typing import Any, Callable

import ray


def map_blocking(fn: Callable[[Any], Any], collection: Iterable[Any]) -> list[Any]:
    """Returns the values of the references that `fn` returns for each item, in order.

    Args:
      fn: a function that returns a reference.
      collection: the items.
    """
    values: list[Any] = ray.get([fn(item) for item in collection])
    return values
