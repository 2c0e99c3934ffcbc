"""Makes the backend hvd known to torch.distributed, without the rest of the package.

``import torch`` calls :func:`register` by the entry point ``hvd`` of the group ``torch.backends`` (torch 2.5 and newer).
"""

import contextlib
from typing import Any

NAME = "hvd"


def _create(*arguments: Any) -> Any:
    """Makes a group. Everything else is imported then."""
    from horovod.torch.distributed import create

    return create(*arguments)


def register() -> None:
    """Registers the backend, unless torch has it or can't have any. Raises nothing: it must not keep torch from being imported."""
    with contextlib.suppress(Exception):
        import torch.distributed as dist

        if not dist.is_available() or NAME.upper() in dist.Backend._plugins:
            return
        try:
            dist.Backend.register_backend(NAME, _create, devices=["cpu"])
        except TypeError:  # before torch 2.1
            dist.Backend.register_backend(NAME, _create)
