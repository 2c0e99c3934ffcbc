"""The settings with which a distributed optimizer reduces gradients: the arguments of scripts, checked."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

from horovod.common import process_sets
from horovod.common.compression import NoneCompressor
from horovod.common.ops import Average, Sum
from horovod.common.optimizer_arguments import check_compression, check_predivide, checked_passes
from horovod.common.process_sets import ProcessSet, global_process_set

Groups = Union[int, Sequence[Sequence[Any]], None]


class Settings(NamedTuple):
    """The arguments of DistributedOptimizer; see :mod:`horovod._keras.interface`."""

    name: Optional[str] = None
    device_dense: str = ""
    device_sparse: str = ""
    compression: Any = None
    sparse_as_dense: bool = False
    gradient_predivide_factor: float = 1.0
    op: int = Average
    backward_passes_per_step: int = 1
    average_aggregated_gradients: bool = False
    groups: Groups = None
    process_set: ProcessSet = global_process_set
    scale_local_gradients: bool = True


def groups_of(num_groups: int, groups: Groups) -> Groups:
    """Returns `groups`, or the groups that `num_groups`, which is deprecated, describes. For functions that scripts call."""
    if num_groups == 0:
        return groups
    warnings.warn("`num_groups` is deprecated: use `groups`", DeprecationWarning, stacklevel=3)
    return num_groups if groups is None else groups


def checked(settings: Settings) -> Settings:
    """Returns `settings`, converted to the declared types. Raises ValueError."""
    if settings.op not in (Average, Sum):
        raise ValueError("op currently only supports Average and Sum")
    check_predivide(settings.op, settings.gradient_predivide_factor)
    check_compression(settings.compression or NoneCompressor)
    settings = settings._replace(backward_passes_per_step=checked_passes(settings.backward_passes_per_step))
    _check_groups(settings.groups)
    process_sets.known(settings.process_set)
    return settings


def _check_groups(groups: Groups) -> None:
    is_number = isinstance(groups, int) and groups > 0
    is_lists = isinstance(groups, list) and all(isinstance(group, (list, tuple)) for group in groups)
    if groups is not None and not is_number and not is_lists:
        raise ValueError("groups should be a positive integer or a list of list of variables.")
