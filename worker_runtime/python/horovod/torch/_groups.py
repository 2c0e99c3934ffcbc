"""What the collectives share: names of groups, checks, and results that are the runtime's
memory."""

from typing import Any, Callable, List, Sequence

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.torch import _tensors


def names_of(base: str, count: int, single: bool = False) -> List[str]:
    """The names of the tensors of one operation, which is a group unless `single`."""
    return [base] if single else ["{}_{}of{}".format(base, i + 1, count) for i in range(count)]


def check_group(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    tensors = list(tensors)
    if not tensors:
        raise ValueError("A grouped operation needs at least one tensor.")
    for tensor in tensors:
        _tensors.check(tensor)
    return tensors


def check_reduction(op: int) -> None:
    if op not in ops.REDUCTIONS:
        raise ValueError(
            "op={!r} is not one of hvd.Average, Sum, Adasum, Min, Max, Product".format(op)
        )


def differentiable(*tensors: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def results(tensors: List[torch.Tensor], single: bool) -> Callable[[int], Any]:
    """The finisher of operations whose results are the runtime's memory."""
    # Only type and device of the inputs are needed, not their memory.
    likes = [torch.empty(0, dtype=tensor.dtype, device=tensor.device) for tensor in tensors]

    def finish(handle: int) -> Any:
        owner = _ffi.ResultOwner(handle)
        values = [
            _tensors.from_result(_ffi.result(handle, i), like, owner)
            for i, like in enumerate(likes)
        ]
        return values[0] if single else values

    return finish
