"""The Horovod package of Keras's backend."""

import importlib
from typing import Any

from horovod._keras.packages import backend_of, package_behind

_SUPPORTED = ("tensorflow", "jax", "torch")


def horovod_for(keras: Any) -> Any:
    """The package for the backend of `keras`; once it is imported, hvd.elastic.run understands what its
    operations raise.

    Raises ImportError if Horovod does not support the backend, or the package can't be imported.
    """
    backend = backend_of(package_behind(keras))
    if backend not in _SUPPORTED:
        raise ImportError(
            f"Horovod works with Keras on {', '.join(_SUPPORTED)}, not on {backend}: set KERAS_BACKEND to one of them."
        )
    return importlib.import_module("horovod." + backend)


def elastic_for(keras: Any) -> Any:
    """Its elastic package."""
    return importlib.import_module(horovod_for(keras).__name__ + ".elastic")
