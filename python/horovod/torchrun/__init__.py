"""A rendezvous of torchrun whose nodes are workers of a job of horovod-rendezvousd.

torchrun finds it by the entry point ``horovod`` of the group ``torchrun.handlers``::

    torchrun --rdzv-backend=horovod --rdzv-endpoint=HOST:PORT --rdzv-conf credentials=FILE --nnodes 1:4 train.py
"""

from typing import Any, Callable


def get_handler() -> Callable[[Any], Any]:
    """Returns the function that makes a rendezvous handler of torch.distributed.elastic from its parameters."""
    return _create


def _create(parameters: Any) -> Any:
    from horovod.torchrun._handler import create_handler  # not before it is asked for: torchrun loads all plug-ins

    return create_handler(parameters)
