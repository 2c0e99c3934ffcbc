"""``hvd.elastic``: training that goes on when workers come and go."""

from typing import Any, Callable

from horovod.common.basics import init, shutdown
from horovod.common.elastic import run_fn
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import ObjectState, State, TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates the training function, whose first argument is a :class:`State`.

    The state is synchronized from rank 0, then the function is called. When a worker fails or the
    world changes, the survivors go back to the last ``state.commit()`` (or stay where they are, if
    nobody failed), join the next world, call the state's reset callbacks, synchronize, and call the
    function again.

    Raises whatever else the function raises; :class:`horovod.common.exceptions.HorovodRequestError`
    is not retried.
    """
    return run_fn(func, _reset)


def _reset() -> None:
    shutdown()
    init()
