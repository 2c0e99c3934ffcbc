"""The groups of torch for tensors in the memory of a device."""

import datetime
from typing import Any, Optional

import torch
import torch.distributed as dist


def backend_of(config: str, device_type: str) -> Optional[str]:
    """Returns the backend that a script has chosen for a type of device, given its choice: "cpu:hvd,cuda:nccl". Without one it is
    NCCL for CUDA; None: there is none.
    """
    for part in config.split(","):
        device, _, backend = part.partition(":")
        if device.strip() == device_type and backend:
            return backend.strip()
    return "nccl" if device_type == "cuda" else None


def make_backend(
    name: Optional[str], device_type: str, store: Any, rank: int, size: int, timeout: datetime.timedelta
) -> Any:
    """Returns torch's backend of this name with its type. Raises RuntimeError: torch has none."""
    of_device = dist.distributed_c10d.PrefixStore(f"{device_type}/", store)
    if name == "nccl" and dist.is_nccl_available():
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        return dist.ProcessGroup.BackendType.NCCL, dist.ProcessGroupNCCL(of_device, rank, size, options)
    if name == "gloo" and dist.is_gloo_available():
        return dist.ProcessGroup.BackendType.GLOO, dist.ProcessGroupGloo(of_device, rank, size, timeout)
    raise RuntimeError(
        f"The backend hvd of torch.distributed takes tensors in host memory, and this torch has no other backend for the "
        f"device {device_type}; name one: init_process_group('cpu:hvd,{device_type}:NAME')."
    )


def register(group: Any, config: str, device: torch.device, store: Any, timeout: datetime.timedelta) -> None:
    """Makes torch's backend for this type of device part of the group."""
    if not hasattr(group, "_register_backend"):
        raise RuntimeError(
            f"With torch {torch.__version__} the backend hvd of torch.distributed takes tensors in host memory only; for those "
            f"on {device.type} torch 2.1 is needed."
        )
    kind, backend = make_backend(
        backend_of(config, device.type), device.type, store, group.rank(), group.size(), timeout
    )
    group._register_backend(torch.device(device.type), kind, backend)
