"""The Horovod package of Keras's backend."""

import importlib
from typing import Any

from horovod._keras.packages import backend_of, package_behind

SUPPORTED = ("tensorflow", "jax", "torch")


def unsupported(backend: str) -> str:
    """Returns the error message for a backend that Horovod does not support."""
    return f"Horovod works with Keras on {', '.join(SUPPORTED)}, not on {backend}: set KERAS_BACKEND to one of them."


def horovod_for(keras: Any) -> Any:
    """Returns the package for the backend of `keras`. After its import, hvd.elastic.run recognizes the exceptions of its operations.

    Raises ImportError if Horovod does not support the backend, or the package can't be imported.
    """
    backend = backend_of(package_behind(keras))
    if backend not in SUPPORTED:
        raise ImportError(unsupported(backend))
    return importlib.import_module("horovod." + backend)


def elastic_for(keras: Any) -> Any:
    """Returns the elastic package for the backend of `keras`."""
    return importlib.import_module(horovod_for(keras).__name__ + ".elastic")
