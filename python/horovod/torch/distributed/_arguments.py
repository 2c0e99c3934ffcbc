"""The arguments of a process group's methods.

torch.distributed passes an object of options. Scripts that call a group's methods may pass the values themselves, and one
tensor in place of a list.
"""

from collections.abc import Sequence
from typing import Any, Union

import torch
from torch.distributed import ReduceOp

Tensors = Sequence[torch.Tensor]


def listed(tensors: Union[torch.Tensor, Tensors]) -> Tensors:
    """Returns the tensors, or a list of the only one."""
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def nested(tensors: Any) -> Sequence[Tensors]:
    """Returns the lists of tensors, or a list of the only one."""
    return [tensors] if tensors and isinstance(tensors[0], torch.Tensor) else tensors


def op_of(options: Any, op: Any = None) -> Any:
    """Returns the reduction: the named argument, what the options say, the options themselves, or the sum."""
    if op is not None:
        return op
    if options is None:
        return ReduceOp.SUM
    return getattr(options, "reduceOp", options)


def root_of(options: Any, root: Any = None) -> int:
    """Returns the root rank, in the group: the named argument, what the options say, the options themselves, or 0."""
    if root is not None:
        return int(root)
    if options is None:
        return 0
    return int(getattr(options, "rootRank", options))


def caller_waits(options: Any) -> bool:
    """Whether the caller waits for the work at once. Older versions of torch do not say."""
    return not getattr(options, "asyncOp", True)
