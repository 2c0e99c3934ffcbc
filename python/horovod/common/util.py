"""Small helpers that Horovod's users import."""

import contextlib
import importlib.util
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional, Protocol

from horovod.common import _built, ops
from horovod.common.basics import (  # noqa: F401
    ccl_built,
    ddl_built,
    gloo_built,
    is_homogeneous,
    mpi_built,
    nccl_built,
)

_FRAMEWORKS = ("jax", "keras", "mxnet", "tensorflow", "torch")


@contextlib.contextmanager
def env(**variables: Optional[str]) -> Iterator[None]:
    """A context in which these variables of the environment are set; those given as None are left
    as they are."""
    given = {name: value for name, value in variables.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether ``import horovod.<ext_base_name>`` works, for the frameworks of Horovod. `verbose` is not used."""
    if ext_base_name not in _FRAMEWORKS:
        return False
    spec = importlib.util.find_spec(ext_base_name)
    return spec is not None and spec.origin is not None  # it has none for a mere folder of that name


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether this framework's tensors are reduced on GPUs. `verbose` is not used."""
    return extension_available(ext_base_name) and _built.cuda_built()


def is_elastic() -> bool:
    """Whether this process was started for an elastic job, whose size may change."""
    return os.environ.get("HOROVOD_ELASTIC") == "1"


class _Reductions(Protocol):
    Average: int
    Sum: int


def get_average_backwards_compatibility_fun(
    reductions: _Reductions = ops,
) -> Callable[[Optional[int], Optional[bool]], int]:
    """Returns the function that makes a reduction of the arguments `op` and (deprecated)
    `average`."""

    def handle(op: Optional[int], average: Optional[bool]) -> int:
        if average is not None:
            if op is not None:
                raise ValueError("The op parameter supersedes average. Please provide only one of them.")
            warnings.warn(
                "Parameter `average` has been replaced with `op` and will be removed",
                DeprecationWarning,
                stacklevel=4,
            )
            return reductions.Average if average else reductions.Sum
        return reductions.Average if op is None else op

    return handle


def split_list(items: Sequence[Any], num_parts: int) -> list[list[Any]]:
    """Splits `items` in order into `num_parts` parts whose lengths differ by at most one; some are
    empty if there are fewer items."""
    short, longer = divmod(len(items), num_parts)
    parts, start = [], 0
    for i in range(num_parts):
        end = start + short + (1 if i < longer else 0)
        parts.append(list(items[start:end]))
        start = end
    return parts


def num_rank_is_power_2(num_rank: int) -> bool:
    """Whether it is 1, 2, 4, ..."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_iterable(value: Any) -> bool:
    """Whether ``iter(value)`` works."""
    try:
        iter(value)
    except TypeError:
        return False
    return True
