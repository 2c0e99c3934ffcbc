"""Lightning's two packages, which have the same content but different classes."""

import importlib.util
import sys

from horovod import _missing

_NAMES = ("lightning.pytorch", "pytorch_lightning")
_NEEDED = "horovod.lightning needs PyTorch Lightning: pip install lightning, or pytorch-lightning"

_missing.framework("torch", _NEEDED)  # which Lightning brings


def in_use() -> list[str]:
    """Returns the packages to support, at least one: those that have been imported, or else the installed one.

    Raises ImportError if none is installed, or both are and neither has been imported.
    """
    imported = [name for name in _NAMES if name in sys.modules]
    if imported:
        return imported
    installed = [name for name in _NAMES if importlib.util.find_spec(name.split(".")[0])]
    if not installed:
        raise ImportError(_NEEDED)
    if len(installed) > 1:
        raise ImportError(
            "Both lightning and pytorch_lightning are installed: import the one that this script "
            "uses before horovod.lightning."
        )
    return installed
