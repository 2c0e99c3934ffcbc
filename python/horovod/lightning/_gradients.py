"""Reduction of the gradients that Lightning's optimizers use, without changes to the optimizers."""

import contextlib
from collections.abc import Iterator, Sequence

import torch

import horovod.torch as hvd
from horovod.torch._wrapped_optimizer import WrappedOptimizer


class GradientReducer:
    """Averages gradients over the ranks while backward() computes them.

    Each optimizer gets a ``hvd.DistributedOptimizer`` that shares its parameter groups and never steps. Lightning, its callbacks
    and the script keep the optimizer itself, because LightningOptimizer, which is a wrapper too, can't wrap a wrapper. Not
    thread-safe.

    Args:
      module: the module, which names the parameters.
      optimizers: optimizers of torch or others, which must not share a parameter.

    Raises ValueError for optimizers that share a parameter or reduce gradients themselves.
    """

    def __init__(self, module: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        names = _names(module, optimizers)
        self._pairs: list[tuple[torch.optim.Optimizer, WrappedOptimizer]] = [
            (optimizer, hvd.DistributedOptimizer(optimizer, named_parameters=list(names))) for optimizer in optimizers
        ]

    def prepare(self) -> None:
        """Adds parameters that were added to an optimizer, or became trainable, since the last call. Call it before backward()."""
        for optimizer, reducer in self._pairs:
            reducer.param_groups = optimizer.param_groups
            reducer._adopt_parameters()

    def finish(self) -> None:
        """Waits until the gradients are reduced, of the optimizers that backward() has computed gradients for. Other optimizers'
        gradients are not touched. Call it after backward().
        """
        for _, reducer in self._pairs:
            if reducer._has_unfinished_gradients():
                reducer._finish_gradients()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Returns a context in which gradients are accumulated on this rank. The first backward() after it reduces them."""
        with contextlib.ExitStack() as stack:
            for _, reducer in self._pairs:
                stack.enter_context(reducer.no_sync())
            yield


def _names(
    module: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer]
) -> list[tuple[str, torch.nn.Parameter]]:
    """Returns a name for each parameter of the module and of the optimizers."""
    names: dict[torch.nn.Parameter, str] = {p: name for name, p in module.named_parameters()}
    owner: dict[torch.Tensor, int] = {}
    for k, optimizer in enumerate(optimizers):
        if isinstance(optimizer, WrappedOptimizer):
            raise ValueError(
                "configure_optimizers() returned a hvd.DistributedOptimizer. HorovodStrategy "
                "reduces the gradients itself: return the optimizer without it."
            )
        parameters: list[torch.nn.Parameter] = [p for group in optimizer.param_groups for p in group["params"]]
        for i, p in enumerate(parameters):
            names.setdefault(p, f"optimizer{k}.parameter{i}")
            if owner.setdefault(p, k) != k:
                raise ValueError(f"{names[p]} is in two optimizers, which HorovodStrategy does not support.")
    return [(name, p) for p, name in names.items()]
