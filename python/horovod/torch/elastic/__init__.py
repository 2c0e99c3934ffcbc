"""``hvd.elastic``: training that goes on when workers come and go."""

from typing import Any, Callable

from horovod.common import basics
from horovod.elastic.loop import run_fn
from horovod.torch.elastic.iterable import ElasticIterableDataset
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import ObjectState, State, TorchState

__all__ = ["ElasticIterableDataset", "ElasticSampler", "ObjectState", "State", "TorchState", "run"]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates the training function, whose first argument is a :class:`State`.

    The state is synchronized from rank 0, then the function is called. When a worker fails, the
    survivors go back to the last ``state.commit()``; when the world is about to change without a
    failure, all leave the function at the same commit and lose nothing. Then they join the next
    world, call the state's reset callbacks, synchronize if somebody lacks the state, and call the
    function again.

    A worker whose host leaves the job ends in here, with code 0. Raises whatever else the function
    raises; :class:`horovod.common.exceptions.HorovodRequestError` is not retried.
    """
    return run_fn(func, basics.reset)
