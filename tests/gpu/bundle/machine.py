"""Prints, as JSON, what a GPU check has to say of the machine, and why it can't be run there; called with the Python that has torch."""

import datetime
import importlib.metadata
import json
import platform
import subprocess
import sys
from typing import Any


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.split("\n")[0].strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _version_of(module: str) -> str:
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return ""


def why_not() -> str:
    """Returns why nothing can be run here; empty if it can."""
    try:
        import torch
    except ImportError:
        return f"torch is not installed in {sys.executable}"

    if not torch.cuda.is_available():
        return f"torch {torch.__version__} sees no NVIDIA GPU"
    import horovod.torch as hvd

    return "" if hvd.nccl_built() else "NCCL can't be loaded"


def facts() -> dict[str, Any]:
    """Returns the card, the versions and the date."""
    import torch

    import horovod
    import horovod.torch as hvd

    nccl = int(hvd.nccl_built())
    return {
        "card": torch.cuda.get_device_name(0),
        "GPUs": torch.cuda.device_count(),
        "driver": _driver(),
        "NCCL": f"{nccl // 10000}.{nccl // 100 % 100}.{nccl % 100}",
        "torch": torch.__version__,
        "JAX": _version_of("jax"),
        "Python": platform.python_version(),
        "Horovod": horovod.__version__,
        "date": datetime.date.today().isoformat(),
    }


if __name__ == "__main__":
    reason = why_not()
    print(json.dumps({"why_not": reason, "facts": {} if reason else facts()}))
