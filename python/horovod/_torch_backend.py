"""The registration of the backend hvd at torch.distributed."""

import contextlib
from typing import Any, Callable

NAME = "hvd"


def register(create: Callable[..., Any]) -> None:
    """Registers the backend, whose groups `create` makes, unless torch has it or can't have any. Raises nothing: it must not keep
    torch from being imported.
    """
    with contextlib.suppress(Exception):
        import torch.distributed as dist

        if not dist.is_available() or NAME.upper() in dist.Backend._plugins:
            return
        try:
            dist.Backend.register_backend(NAME, create, devices=["cpu"])
        except TypeError:  # before torch 2.1
            dist.Backend.register_backend(NAME, create)
