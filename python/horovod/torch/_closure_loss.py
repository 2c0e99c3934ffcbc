"""The loss that a closure returns to an optimizer. One that decides by it, as a line search does, must get the same on all ranks."""

from typing import Any, Optional

import torch

from horovod.common.process_sets import ProcessSet
from horovod.torch._wrapped_optimizer import WrappedOptimizer
from horovod.torch.mpi_ops import Sum, allreduce_


def decides_by_loss(kind: type) -> bool:
    """Returns whether the step of a distributed optimizer's class may depend on the closure's loss."""
    behind = (each for each in kind.__mro__ if not issubclass(each, WrappedOptimizer) and "step" in vars(each))
    of_step = next(behind, None)
    is_torchs = of_step is not None and of_step.__module__.startswith("torch.optim.")
    return not is_torchs or issubclass(kind, torch.optim.LBFGS)


def loss_of_all(loss: object, name: str, is_sum: bool, process_set: ProcessSet) -> object:
    """Returns the average of the ranks' losses, or their sum, like `loss`. Those that are no single number do not count; if none is,
    `loss` itself.
    """
    own = _number(loss)
    counted = torch.tensor([0.0, 0.0] if own is None else [own, 1.0], dtype=torch.float64, device="cpu")
    total, count = allreduce_(counted, name=name, op=Sum, process_set=process_set).tolist()
    if count == 0:
        return loss
    value = total if is_sum else total / count
    return torch.full_like(loss.detach(), value) if own is not None and isinstance(loss, torch.Tensor) else value


def _number(loss: Any) -> Optional[float]:
    if isinstance(loss, torch.Tensor):
        return float(loss.detach()) if loss.numel() == 1 and not loss.is_complex() else None
    try:
        return float(loss)
    except (TypeError, ValueError):
        return None
