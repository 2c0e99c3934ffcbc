"""The collectives on torch's tensors, and their gradients."""

from collections.abc import Sequence
from typing import Any

import torch

from horovod.common.collective import Call, Collective, Recording
from horovod.common.collective_kinds import Collectives
from horovod.torch import _tensors
from horovod.torch._tensors import not_compiled


class Differentiable(torch.autograd.Function):  # type: ignore[misc]  # torch is Any here
    """The autograd function of a collective; of a group unless `single`."""

    @staticmethod
    def forward(
        ctx: Any, collective: Collective, single: bool, call: Call, *tensors: torch.Tensor
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


class _Recording(Recording):
    """Runs collectives through `function` if a gradient is needed."""

    def run(
        self,
        collective: Collective,
        tensor: torch.Tensor,
        call: Call,
        function: type[Differentiable] = Differentiable,
    ) -> Any:
        if not _wants_gradient(tensor):
            return collective.run(tensor, call)
        values = function.apply(collective, True, call, tensor)
        return values[0] if len(values) == 1 else values

    def run_group(
        self,
        collective: Collective,
        tensors: Sequence[torch.Tensor],
        call: Call,
        function: type[Differentiable] = Differentiable,
    ) -> tuple[Any, ...]:
        tensors = list(tensors)
        if not any(_wants_gradient(tensor) for tensor in tensors):
            return collective.run_group(tensors, call)
        values = function.apply(collective, False, call, *tensors)
        count = len(tensors)
        return tuple(values) if len(values) == count else tuple(zip(values[:count], values[count:]))


recording = _Recording()
collectives = Collectives(_tensors, recording)
