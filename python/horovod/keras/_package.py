"""The package `keras`."""

import os
from typing import Any

from horovod import _missing
from horovod._keras.backends import SUPPORTED, unsupported

__all__ = ["keras"]


def _import_keras() -> Any:
    _missing.hide_frames()
    try:
        import keras
    except ImportError as error:
        raise ImportError(_reason(error)) from None
    except ValueError as error:
        unknown = str(error).partition("Unable to import backend : ")[2]
        if not unknown:
            raise
        raise ImportError(unsupported(unknown)) from None
    return keras


def _reason(error: ImportError) -> str:
    """Why Keras can't be imported, and what helps."""
    problem = _missing.first_line(error)
    if error.name == "keras":
        return f"horovod.keras needs Keras 2.13 or newer: pip install keras ({problem})"
    backend = os.environ.get("KERAS_BACKEND", "")
    if backend and backend not in SUPPORTED:
        return unsupported(backend)
    if not backend and error.name not in SUPPORTED:
        return f"horovod.keras can't import keras ({problem})"
    used = f"KERAS_BACKEND is {backend}" if backend else f"KERAS_BACKEND is not set, so Keras uses {error.name}"
    backend = backend or str(error.name)
    others = " or ".join(name for name in SUPPORTED if name != backend)
    return (
        f"horovod.keras needs Keras's backend. {used}, which can't be imported ({problem}): "
        f"pip install {backend}, or set KERAS_BACKEND to {others}"
    )


keras = _import_keras()
