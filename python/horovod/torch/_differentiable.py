"""The collectives on torch's tensors, and their gradients."""

from collections.abc import Iterable, Sequence
from typing import Any, Callable

import torch

from horovod.common.collective import Call, Collective, Recording, V
from horovod.common.collective_kinds import Collectives
from horovod.torch import _tensors
from horovod.torch._tensors import not_compiled


class Differentiable(torch.autograd.Function):
    """The autograd function of a collective; of a group unless `single`."""

    @staticmethod
    def forward(
        ctx: Any, collective: Collective[torch.Tensor, Any], single: bool, call: Call, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        if single:
            values: tuple[Any, ...] = (collective.run(tensors[0], call),)
        else:
            values = collective.run_group(tensors, call)
        ctx.collective, ctx.single, ctx.process_set = collective, single, call.process_set
        ctx.saved = [collective.save(t, value, call) for t, value in zip(tensors, values)]
        if not isinstance(values[0], tuple):
            return tuple(values)
        outputs, received = zip(*values)
        ctx.mark_non_differentiable(*received)
        return (*outputs, *received)

    @staticmethod
    @not_compiled
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:
        own = [grad.contiguous() for grad in grads[: len(ctx.saved)]]
        own = ctx.collective.backward(own, ctx.saved, ctx.process_set, ctx.single)
        return (None, None, None, *own)


def _wants_gradient(tensor: torch.Tensor) -> bool:
    # A value that is not a tensor is rejected by check().
    return torch.is_grad_enabled() and getattr(tensor, "requires_grad", False)


class _Recording(Recording[torch.Tensor]):
    """Runs collectives through `function` if a gradient is needed."""

    def run(
        self,
        collective: Collective[torch.Tensor, V],
        tensor: torch.Tensor,
        call: Call,
        function: type[Differentiable] = Differentiable,
    ) -> V:
        if not _wants_gradient(tensor):
            return collective.run(tensor, call)
        apply: Callable[..., Any] = function.apply
        values = apply(collective, True, call, tensor)
        value: V = values[0] if len(values) == 1 else values
        return value

    def run_group(
        self,
        collective: Collective[torch.Tensor, V],
        tensors: Sequence[torch.Tensor],
        call: Call,
        function: type[Differentiable] = Differentiable,
    ) -> tuple[V, ...]:
        tensors = list(tensors)
        if not any(_wants_gradient(tensor) for tensor in tensors):
            return collective.run_group(tensors, call)
        apply: Callable[..., Any] = function.apply
        values = apply(collective, False, call, *tensors)
        count = len(tensors)
        each: Iterable[Any] = values if len(values) == count else zip(values[:count], values[count:])
        return tuple(each)


recording = _Recording()
collectives = Collectives[torch.Tensor](_tensors, recording)
