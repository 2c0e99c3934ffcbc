"""Checks of the arguments that the distributed optimizers of all frameworks share."""

import operator
from typing import Any

from horovod.common.ops import Average


def check_predivide(op: int, gradient_predivide_factor: float) -> None:
    """Raises ValueError if the factor can't be combined with `op`, or is 0."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if gradient_predivide_factor == 0:
        raise ValueError("gradient_predivide_factor must not be 0: gradients are divided by it")


def checked_passes(backward_passes_per_step: Any) -> int:
    """Returns the number of passes as an int. Raises ValueError unless it is a positive whole number, of any type: a quotient is
    a float.
    """
    try:
        whole = isinstance(backward_passes_per_step, float) and backward_passes_per_step.is_integer()
        passes = int(backward_passes_per_step) if whole else operator.index(backward_passes_per_step)
    except TypeError:
        passes = 0
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step must be > 0, an integer, not {backward_passes_per_step!r}")
    return passes


def check_compression(compression: object) -> None:
    """Raises ValueError if `compression` lacks the methods compress and decompress."""
    if not (hasattr(compression, "compress") and hasattr(compression, "decompress")):
        raise ValueError(f"compression={compression!r} is not one of hvd.Compression, such as hvd.Compression.fp16")
