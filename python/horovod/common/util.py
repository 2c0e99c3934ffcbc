"""Small helper functions for users of Horovod."""

import contextlib
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional, Protocol, TypeVar

from horovod.common import _built, _warnings, ops
from horovod.common._process import is_elastic as is_elastic
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
    """Returns a context in which environment variables are set; afterwards they have their old values.

    Args:
      variables: names and values. A variable whose value is None is left as it is.

    Example:
      >>> import os
      >>> from horovod.common.util import env
      >>> with env(HOROVOD_LOG_LEVEL="debug"):
      ...     os.environ["HOROVOD_LOG_LEVEL"]
      'debug'
    """
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
    """Returns whether a framework that Horovod supports is installed, so that ``import horovod.<ext_base_name>`` works.

    Args:
      ext_base_name: "jax", "keras", "mxnet", "tensorflow" or "torch".
      verbose: not used.

    Example:
      >>> from horovod.common.util import extension_available
      >>> extension_available("chainer")
      False
    """
    if ext_base_name not in _FRAMEWORKS:
        return False
    spec = importlib.util.find_spec(ext_base_name)
    return spec is not None and spec.origin is not None  # it has none for a mere folder of that name


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Raises ImportError if ``import <ext_name>`` can't work, because its framework is not installed or not supported.

    Args:
      ext_name: the package of a framework, as in "horovod.torch".
      ext_env_var, pkg_path, args: not used: the libraries are part of the wheel.

    Raises:
      ImportError: its text is one line.

    Example:
      >>> from horovod.common.util import check_extension
      >>> check_extension("horovod.chainer", "", "")
      Traceback (most recent call last):
      ImportError: horovod.chainer can't be imported: chainer is not installed, or not supported.
    """
    framework = ext_name.rpartition(".")[2]
    if not extension_available(framework):
        raise ImportError(f"{ext_name} can't be imported: {framework} is not installed, or not supported.")


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Compares two versions by their numbers; what follows the numbers is ignored.

    Args:
      ver: a version, as in "2.1.0+cpu".
      target: the version to compare with.

    Returns:
      Whether `ver` is `target` or later.

    Raises:
      ValueError: an argument is no text, or does not begin with a number.

    Example:
      >>> from horovod.common.util import is_version_greater_equal_than
      >>> is_version_greater_equal_than("2.10", "2.9.1")
      True
    """
    numbers = [_numbers_of(version) for version in (ver, target)]
    length = max(map(len, numbers))
    first, second = ([*each, *[0] * (length - len(each))] for each in numbers)
    return first >= second


def _numbers_of(version: str) -> list[int]:
    match = re.match(r"\d+(?:\.\d+)*", version) if isinstance(version, str) else None
    if match is None:
        raise ValueError(f"{version!r} is no version: give text, as '2.1.0'")
    return [int(number) for number in match[0].split(".")]


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Returns whether a framework's tensors are reduced on GPUs.

    Args:
      ext_base_name: as for :func:`extension_available`.
      verbose: not used.
    """
    return extension_available(ext_base_name) and _built.cuda_built()


class _Reductions(Protocol):
    Average: int
    Sum: int


def get_average_backwards_compatibility_fun(
    reductions: _Reductions = ops,
) -> Callable[[Optional[int], Optional[bool]], int]:
    """Returns a function that turns the arguments `op` and `average` (deprecated) into a reduction.

    Args:
      reductions: an object with the attributes Average and Sum, by default Horovod's.

    Example:
      >>> from horovod.common.util import get_average_backwards_compatibility_fun
      >>> handle = get_average_backwards_compatibility_fun()
      >>> handle(op=None, average=None) == handle(op=None, average=True)
      True
    """

    def handle(op: Optional[int], average: Optional[bool]) -> int:
        """Returns the reduction that `op` and `average` stand for.

        Args:
          op: a reduction, or None.
          average: deprecated: True stands for Average, False for Sum.

        Raises:
          ValueError: both are given.
        """
        if average is not None:
            if op is not None:
                raise ValueError("op and average are both given, and op replaces average: leave average out")
            _warnings.warn("`average` is deprecated: use `op`", DeprecationWarning)
            return reductions.Average if average else reductions.Sum
        return reductions.Average if op is None else op

    return handle


_Item = TypeVar("_Item")


def split_list(items: Sequence[_Item], num_parts: int) -> list[list[_Item]]:
    """Splits a sequence, in order, into parts whose lengths differ by at most one.

    Args:
      items: the sequence.
      num_parts: the number of parts. If there are fewer items, some parts are empty.

    Returns:
      The parts, as lists.

    Example:
      >>> from horovod.common.util import split_list
      >>> split_list([1, 2, 3, 4, 5], 2)
      [[1, 2, 3], [4, 5]]
    """
    short, longer = divmod(len(items), num_parts)
    parts, start = [], 0
    for i in range(num_parts):
        end = start + short + (1 if i < longer else 0)
        parts.append(list(items[start:end]))
        start = end
    return parts


def num_rank_is_power_2(num_rank: int) -> bool:
    """Returns whether a number is a power of two.

    Args:
      num_rank: the number.

    Example:
      >>> from horovod.common.util import num_rank_is_power_2
      >>> num_rank_is_power_2(8), num_rank_is_power_2(6)
      (True, False)
    """
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_iterable(value: Any) -> bool:
    """Returns whether ``iter(value)`` works.

    Args:
      value: any object.

    Example:
      >>> from horovod.common.util import is_iterable
      >>> is_iterable([]), is_iterable(0)
      (True, False)
    """
    try:
        iter(value)
    except TypeError:
        return False
    return True
