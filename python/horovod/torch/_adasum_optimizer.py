"""The distributed optimizer for Adasum, which reduces the changes of a local step instead of the gradients.

Source: Maleki et al., Scaling Distributed Training with Adaptive Summation, 2020.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

import torch

from horovod.torch._tensors import not_compiled
from horovod.torch._wrapped_optimizer import WrappedOptimizer
from horovod.torch.mpi_ops import Adasum, Max, allreduce_, allreduce_async_, synchronize


class AdasumOptimizer(WrappedOptimizer):
    """Steps locally, then changes each parameter by the Adasum of the ranks' changes.

    torch's GradScaler decides from local gradients here whether it skips a step. So the ranks agree first: a rank with finite
    gradients makes them infinite if another rank's are not finite.
    """

    def _setup(self, named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]], **settings: Any) -> None:
        self._arrived = False  # gradients, since the last step
        self._agreed = False  # on whether they are finite, since the last step
        self._setup_parameters(named_parameters, **settings)

    def _gradient_arrived(self, p: torch.Tensor) -> None:
        self._arrived = True

    def _has_unfinished_gradients(self) -> bool:
        return self._arrived and not self._agreed and self._reduces()

    def _finish_gradients(self) -> None:
        grads = [p.grad for p in self._trained() if p.grad is not None]
        finite = all(bool(torch.isfinite(_values(grad)).all()) for grad in grads)
        if self._agree(finite) is False and finite and grads:
            _values(grads[0]).fill_(float("inf"))

    def _open_group(self) -> str:
        passes = self.backward_passes_per_step
        return f"backward_passes_per_step={passes}" if self._arrived and passes > 1 else ""

    def _agree(self, finite: bool) -> bool:
        self._agreed = True
        name = "adasum.overflow." + self._prefix + next(iter(self._parameter_names.values()), "")
        flag = torch.tensor([0 if finite else 1], dtype=torch.int32, device="cpu")
        return int(allreduce_(flag, name=name, op=Max, process_set=self.process_set)) == 0

    @not_compiled
    def step(self, closure: Optional[Callable[[], Any]] = None, **kwargs: object) -> Any:
        """Steps as the wrapped optimizer does on this rank's gradients, then reduces the changes of the parameters."""
        self._adopt_parameters()
        if not self._reduces():
            return self._step_as_wrapped(closure, kwargs)
        if not self._agreed:
            self._agree(True)  # no code has asked on this rank, but other ranks may wait for its answer
        trained = self._trained()
        with torch.no_grad():
            starts = [p.detach().clone() for p in trained]
        result = self._step_as_wrapped(closure, kwargs)
        with torch.no_grad():
            self._reduce_changes(trained, starts)
        self._arrived = self._agreed = False
        return result

    step.hooked = True  # type: ignore[attr-defined]  # for torch: the wrapped optimizer's step runs the step hooks

    def _reduce_changes(self, trained: list[torch.Tensor], starts: list[torch.Tensor]) -> None:
        started = []
        for p, start in zip(trained, starts):
            buffer, ctx = self._compression.compress((p.detach() - start).contiguous())
            handle = allreduce_async_(buffer, name=self._operation_name(p), op=Adasum, process_set=self.process_set)
            started.append((handle, buffer, ctx))
        for p, start, (handle, buffer, ctx) in zip(trained, starts, started):
            synchronize(handle)
            p.detach().copy_(start + self._compression.decompress(buffer, ctx))

    def synchronize(self) -> None:
        """Does nothing: gradients are not reduced."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Raises AssertionError: a step without reduction makes no sense with Adasum."""
        raise AssertionError("skip_synchronize: op=Adasum reduces within step(), so that no step can do without it")
        yield

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Returns a context that changes nothing: gradients are not reduced."""
        yield

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state as the wrapped optimizer does."""
        self._arrived = self._agreed = False
        super().load_state_dict(state_dict)


def _values(grad: torch.Tensor) -> torch.Tensor:
    return grad._values() if grad.is_sparse else grad
