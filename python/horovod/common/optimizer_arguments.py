"""Checks of the arguments that the distributed optimizers of all frameworks have."""

import operator
from typing import Any

from horovod.common.ops import Average


def check_predivide(op: int, gradient_predivide_factor: float) -> None:
    """Raises ValueError if the factor doesn't go with `op`, or nothing can be divided by it."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if gradient_predivide_factor == 0:
        raise ValueError("gradient_predivide_factor must not be 0: gradients are divided by it")


def checked_passes(backward_passes_per_step: Any) -> int:
    """The number of passes, of any type of integers. Raises ValueError unless it is a positive integer."""
    try:
        passes = operator.index(backward_passes_per_step)
    except TypeError:
        passes = 0
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step must be > 0, an integer, not {backward_passes_per_step!r}")
    return passes


def check_compression(compression: Any) -> None:
    """Raises ValueError if it is none of hvd.Compression, nor the like of users."""
    if not (hasattr(compression, "compress") and hasattr(compression, "decompress")):
        raise ValueError(f"compression={compression!r} is not one of hvd.Compression, such as hvd.Compression.fp16")
