"""The parameters that several optimizers share, of which only one reduces their gradients."""

import weakref
from typing import Optional

import torch

from horovod.common import _process
from horovod.torch._gradient_forms import GradientForms
from horovod.torch._reduced_gradients import ReducedGradients
from horovod.torch.mpi_ops import Average

_SUMMED_FOR_ANOTHER = (
    "the gradient of {name} was reduced for another optimizer of this parameter, which has stepped: a second reduction would add up "
    "the ranks' results; step last with the one that was made or zeroed last"
)

# Of optimizers that share a parameter, the one that reduces its gradient, by the parameter's id.
_reducers: "weakref.WeakValueDictionary[int, SharedParameters]" = weakref.WeakValueDictionary()


class SharedParameters(GradientForms):
    """Decides which optimizer reduces the gradient of a shared parameter: the one that was made, zeroed or stepped last.

    So it does not matter whether an optimizer that the script has dropped still exists: Python collects one in a cycle of
    references when it likes, on each rank at another time.
    """

    def _setup_sharing(self, op: int) -> None:
        self.op = op
        self._done: set[torch.Tensor] = set()  # reduced in this step
        self._kept = ReducedGradients()  # in the last step, for optimizers that share parameters
        self._world: Optional[_process.World] = _process.process.world  # of the gradients
        self._shares = False  # parameters with another optimizer
        # One that reduces some of them. It exists as long as this one, on all ranks.
        self._successor: Optional[SharedParameters] = None

    def take_parameters(self, to_reduce: bool = False) -> None:
        """Makes this optimizer the one that reduces its parameters' gradients. All ranks must call it at the same place.

        Args:
          to_reduce: whether it reduces the present gradients next. RuntimeError if that would sum them again.
        """
        for p in self._parameters():
            other = _reducers.get(id(p))
            if other is not self:
                if other is not None:
                    self._take_from(other, p, to_reduce)
                _reducers[id(p)] = self
        self._successor = None  # not before: what it has reduced is taken over

    def _take_from(self, other: "SharedParameters", p: torch.Tensor, to_reduce: bool) -> None:
        self._shares = other._shares = True
        other._successor = self
        self._kept.drop(p)
        if other._world is not self._world:
            return
        if p in other._done:
            self._done.add(p)
        elif to_reduce and self.op != Average and p not in self._done and other._kept.has(p):
            # Not taken for reduced: what a rank sees of a gradient may differ from what the others see, and one that goes on while
            # they ask would mix its steps with theirs.
            raise RuntimeError(_SUMMED_FOR_ANOTHER.format(name=self._parameter_names[p]))

    def _leave_parameter(self, p: torch.Tensor) -> None:
        if _reducers.get(id(p)) is self:
            del _reducers[id(p)]
        self._kept.drop(p)

    def _is_reduced_by_another(self, p: torch.Tensor) -> bool:
        return self._shares and _reducers.get(id(p)) is not self
