"""The package `keras`."""

try:
    import keras
except ImportError as error:
    needed = (
        "Keras 2.13 or newer: pip install keras" if error.name == "keras" else "the backend that KERAS_BACKEND names"
    )
    raise ImportError(f"horovod.keras needs {needed} ({error})") from error

__all__ = ["keras"]
