"""The Keras that an object belongs to: Keras 2 and 3 can be in one process, as `keras` and `tf_keras`."""

import sys
from typing import Any

_PACKAGES = ("keras", "tf_keras")


def package_of(value: Any) -> Any:
    """Returns the Keras package that the class of `value` comes from, as a module; None if it comes from no Keras."""
    for base in type(value).__mro__:
        root = base.__module__.split(".")[0]
        if root in _PACKAGES and root in sys.modules:
            return sys.modules[root]
    return None


def package_behind(keras: Any) -> Any:
    """Returns the package that a module with Keras's interface, such as tf.keras, belongs to."""
    return sys.modules[keras.Model.__module__.split(".")[0]]


def is_keras3(package: Any) -> bool:
    """Returns whether the package is Keras 3 or later."""
    return int(str(package.__version__).split(".")[0]) >= 3


def backend_of(package: Any) -> str:
    """Returns the package's backend: "tensorflow", "jax" or "torch"."""
    return str(package.backend.backend()) if is_keras3(package) else "tensorflow"
