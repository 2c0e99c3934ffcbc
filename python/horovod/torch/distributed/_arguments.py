"""The arguments of a process group's methods.

torch.distributed passes an object of options. Scripts that call a group's methods may pass the values themselves, and one
tensor in place of a list.
"""

from collections.abc import Sequence
from typing import Any, Union

import torch
from torch.distributed import ReduceOp

Tensors = Sequence[torch.Tensor]


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor that has the memory: of a result of a functional collective, which is waited for, the result itself.

    Raises TypeError: the tensor is a wrapper of others, such as a DTensor.
    """
    if type(tensor) in _PLAIN:
        return tensor
    if hasattr(tensor, "trigger_wait"):  # AsyncCollectiveTensor
        waited: torch.Tensor = tensor.trigger_wait()
        return waited
    if hasattr(type(tensor), "__tensor_flatten__"):
        raise TypeError(f"The backend hvd takes plain tensors, got a {type(tensor).__name__}.")
    return tensor


def listed(tensors: Union[torch.Tensor, Tensors]) -> Tensors:
    """Returns the plain tensors, or a list of the only one."""
    return [plain(tensors)] if isinstance(tensors, torch.Tensor) else [plain(tensor) for tensor in tensors]


def nested(tensors: Any) -> Sequence[Tensors]:
    """Returns the lists of plain tensors, or a list of the only one."""
    if not tensors:
        return []
    return [listed(tensors)] if isinstance(tensors[0], torch.Tensor) else [listed(of_one) for of_one in tensors]


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
