"""The package `keras`."""

try:
    import keras
except ImportError as error:
    raise ImportError(f"horovod.keras needs Keras 2.13 or newer: pip install keras ({error})") from error

__all__ = ["keras"]
