"""An agreement of the ranks on the gradients that they reduce now."""

from collections.abc import Collection, Sequence

import torch

from horovod.common import ops
from horovod.common.collective import reduction
from horovod.common.exceptions import HorovodRequestError
from horovod.common.process_sets import ProcessSet
from horovod.torch._differentiable import collectives
from horovod.torch._rates import Rates

_NUMBERS = 256  # that a byte can tell apart


_PREFIX = "horovod.gradients."  # of the operations' names
_OTHER_ORDER = "Mismatched order of operations"


def explained(error: HorovodRequestError, parameters: int) -> HorovodRequestError:
    """Returns the error of an optimizer's operations, with what an agreement is if its text names one, or with what to do if the
    ranks wait for different gradients.

    Args:
      error: the error.
      parameters: how many the optimizer of this rank has.
    """
    if _PREFIX not in str(error) and _OTHER_ORDER in str(error):
        text = (
            f"{error}. If ranks use parameters of different optimizers in a backward(): one optimizer for all of them, or "
            "backward() in no_sync() of each optimizer, then step() in the same order"
        )
        return HorovodRequestError(text, code=error.code)
    if _PREFIX not in str(error):
        return error
    text = (
        f"{error}. '{_PREFIX}...' is how the ranks' optimizers agree at the end of backward() and in step(): they need the same "
        f"parameters on all ranks (this rank's has {parameters}), and all ranks must be in backward() or step() then"
    )
    return HorovodRequestError(text, code=error.code)


class Agreement:
    """A question to all ranks of an optimizer at the end of backward() or in step(): whose gradients are not reduced yet?

    A rank can't know alone which reductions it may wait for: another rank may have used other parameters. So each rank gives a
    byte for each parameter, and takes part in the reduction of each that any rank has given. Further bytes tell whether a rank
    is still before its step(), and the number of the question since the last step: a rank that asks less often than the others
    would otherwise answer a later question. The last bytes compare the learning rates of the last step; see :class:`Rates`.

    Args:
      name: what tells the optimizer from others.
      process_set: the ranks that take part.
      parameters: all parameters, in an order that all ranks share.
      arrived: those with a gradient that is not reduced yet.
      in_step: whether this rank is in step(), so that no other gradient can come before it.
      number: of the questions before it since the last step.
      rates: those of this rank's last step.
    """

    def __init__(
        self,
        name: str,
        process_set: ProcessSet,
        parameters: Sequence[torch.Tensor],
        arrived: Collection[torch.Tensor],
        in_step: bool,
        number: int,
        rates: Rates,
    ) -> None:
        self._parameters = parameters
        self._rates = rates
        number %= _NUMBERS
        count = len(parameters)
        given = bytearray(b"\1" * count) if len(arrived) == count else bytearray(p in arrived for p in parameters)
        self._bytes = given + bytes((not in_step, number, _NUMBERS - 1 - number)) + rates.digest
        tensor = torch.frombuffer(self._bytes, dtype=torch.uint8)
        self.handle: int = collectives.allreduce.start(
            tensor, reduction(_PREFIX + name, process_set, ops.Max, in_place=True)
        )

    def answer(self) -> tuple[list[torch.Tensor], bool]:
        """Returns the parameters that any rank has a gradient of, and whether all ranks are in step(). The operation is complete.

        Raises HorovodRequestError on all ranks if they do not ask the same question, or have stepped with different learning rates.
        """
        end = -len(self._rates.digest)
        *given, before_step, number, inverse = self._bytes[:end]
        if number + inverse != _NUMBERS - 1:
            raise HorovodRequestError(
                "The ranks' calls of backward() and of optimizer.step() do not match: each rank must call both equally often. "
                "With several backward() before a step, set backward_passes_per_step to their number, "
                "or use optimizer.no_sync() for all but the last."
            )
        self._rates.check(bytes(self._bytes[end:]))
        return [p for p, wanted in zip(self._parameters, given) if wanted], not before_step
