"""Warnings that point at the script."""

import sys
import warnings

# "": code that a compiler has generated.
_NOT_THE_SCRIPT = ("", "horovod", "torch", "tensorflow", "keras", "jax", "mxnet")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the innermost line that is neither in this package nor in a framework, which may have wrapped our functions."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_SCRIPT:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
