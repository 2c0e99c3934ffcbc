"""Small helpers that Horovod's users import."""

import os
import warnings
from typing import Any, List, Optional, Sequence

from horovod.common import ops
from horovod.common.basics import gloo_built, is_homogeneous, mpi_built, nccl_built  # noqa: F401


def is_elastic() -> bool:
    """Whether this process was started for an elastic job, whose size may change."""
    return os.environ.get("HOROVOD_ELASTIC") == "1"


def get_average_backwards_compatibility_fun(reductions: Any = ops):
    """Returns the function that makes a reduction of the arguments `op` and (deprecated)
    `average`."""

    def handle(op: Optional[int], average: Optional[bool]) -> int:
        if average is not None:
            if op is not None:
                raise ValueError(
                    "The op parameter supersedes average. Please provide only one of them."
                )
            warnings.warn(
                "Parameter `average` has been replaced with `op` and will be removed",
                DeprecationWarning,
                stacklevel=4,
            )
            return reductions.Average if average else reductions.Sum
        return reductions.Average if op is None else op

    return handle


def split_list(items: Sequence[Any], num_parts: int) -> List[List[Any]]:
    """Splits `items` in order into `num_parts` parts whose lengths differ by at most one; empty
    ones are left out."""
    short, longer = divmod(len(items), num_parts)
    parts, start = [], 0
    for i in range(num_parts):
        end = start + short + (1 if i < longer else 0)
        parts.append(list(items[start:end]))
        start = end
    return [part for part in parts if part]
