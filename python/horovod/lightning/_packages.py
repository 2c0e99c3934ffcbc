"""Lightning comes as two packages of the same content, whose classes are not the same."""

import importlib.util
import sys

from horovod import _missing

_NAMES = ("lightning.pytorch", "pytorch_lightning")
_NEEDED = "horovod.lightning needs PyTorch Lightning: pip install lightning, or pytorch-lightning"

_missing.framework("torch", _NEEDED)  # which Lightning brings


def in_use() -> list[str]:
    """The packages to work with, at least one: those that have been imported, else the one that is
    installed.

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
