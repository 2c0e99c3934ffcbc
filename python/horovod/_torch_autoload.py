"""Makes the backend hvd known to torch, without the rest of the package: ``import torch`` calls :func:`register` by the entry
point ``hvd`` of the group ``torch.backends`` (torch 2.5 and newer).
"""

from typing import Any

from horovod import _torch_backend


def _create(*arguments: Any) -> Any:
    """Makes a group. Everything else is imported then."""
    from horovod.torch.distributed import create

    return create(*arguments)


def register() -> None:
    """Registers the backend. Raises nothing."""
    _torch_backend.register(_create)
