"""What the collectives share: names of groups, checks, and results that are the runtime's
memory."""

from typing import Any, Callable, List, Optional, Sequence

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.torch import _devices, _tensors


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
    # What is no tensor is refused where it is checked.
    return torch.is_grad_enabled() and any(
        [getattr(tensor, "requires_grad", False) for tensor in tensors]
    )


def results(
    tensors: List[torch.Tensor],
    single: bool,
    outputs: Optional[Sequence[Optional[torch.Tensor]]] = None,
    value: Callable[[torch.Tensor, _ffi.Result, int], Any] = lambda tensor, result, index: tensor,
) -> Callable[[int], Any]:
    """The finisher of operations whose results are the runtime's memory or, if they were started by
    :mod:`_devices`, may be in `outputs`. `value(tensor, result, index)` makes each one's value."""
    # Only type and device of the inputs are needed, not their memory.
    likes = [torch.empty(0, dtype=tensor.dtype, device=tensor.device) for tensor in tensors]

    def finish(handle: int) -> Any:
        owner = _ffi.ResultOwner(handle)
        values = []
        for i, like in enumerate(likes):
            result = _ffi.result(handle, i)
            if outputs is None:
                tensor = _tensors.from_result(result, like, owner)
            else:
                tensor = _devices.from_result(result, like, outputs[i])
            values.append(value(tensor, result, i))
        return values[0] if single else values

    return finish
