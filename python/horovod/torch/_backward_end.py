"""The end of a backward pass: work that is done after backward() has computed all gradients, and before it returns."""

import sys
import weakref
from collections.abc import Iterator
from typing import Callable, Optional

import torch

from horovod.common import _warnings
from horovod.common.process_sets import ProcessSet
from horovod.torch._tensors import not_compiled

_BACKWARD_OF_A_FUNCTION = torch.autograd.function.BackwardCFunction.apply.__code__

_UNSEEN = (
    "torch._dynamo.config.compiled_autograd: backward() can't wait for the reductions, so gradients are reduced only in "
    "step(). Call optimizer.synchronize() before you read or clip them, then step() within "
    "`with optimizer.skip_synchronize():`"
)
_has_warned = False


def is_nested() -> bool:
    """Returns whether this thread is in a backward() that the backward of an autograd function runs, as reentrant checkpointing
    does. Such a pass ends before the one around it.
    """
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code is _BACKWARD_OF_A_FUNCTION:
            return True
        frame = frame.f_back
    return False


def warn_if_unseen(process_set: ProcessSet) -> None:
    """Warns, once in the process, if torch has compiled the present backward pass: it calls nothing at the end of such a pass. Of
    the ranks of the set its first one does so.
    """
    global _has_warned
    compiled = sys.modules.get("torch._dynamo.compiled_autograd")
    if _has_warned or not getattr(compiled, "in_compiled_autograd_region", False) or process_set.rank() != 0:
        return
    _has_warned = True
    _warnings.warn(_UNSEEN)


class _Work:
    """The work of one pass. The engine calls it."""

    def __init__(self, stages: Iterator[None]) -> None:
        self._stages = stages
        self.is_done = False

    @not_compiled
    def __call__(self) -> None:
        self.is_done = True  # also if a stage fails: whoever keeps its exception keeps this object
        for _ in self._stages:
            self.is_done = False
            _queue(self)
            return


def _queue(work: _Work) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(work)


class BackwardEnd:
    """The work of one object at the end of each backward pass that it takes part in. Not thread-safe.

    The work is a generator, which yields before it waits for other ranks. The next stage comes after that stage of all other
    objects in the pass. So the order of the objects, which may differ between ranks, can't make ranks wait for each other.
    """

    def __init__(self) -> None:
        # The engine keeps the work alive, and drops it with a pass that fails.
        self._work: Callable[[], Optional[_Work]] = lambda: None

    def is_awaited(self) -> bool:
        """Returns whether work waits for the end of the present pass."""
        work = self._work()
        return work is not None and not work.is_done

    def add(self, stages: Iterator[None]) -> None:
        """Adds the work of the innermost pass of this thread."""
        work = _Work(stages)
        self._work = weakref.ref(work)
        _queue(work)
