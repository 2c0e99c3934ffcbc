"""Distributed training with Horovod's interface.

Frameworks have a package each: ``import horovod.torch as hvd``. ``horovod.run`` starts a function on
several ranks from Python.
"""

import importlib
import os
from typing import Any

from horovod import _installation, _missing
from horovod.version import __version__ as __version__

_installation.refuse_mixed(os.path.dirname(os.path.abspath(__file__)), __version__)
_missing.explain_imports()


# The names with which scripts begin.
_OF_FRAMEWORKS = {
    "DistributedOptimizer",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_parameters",
    "elastic",
    "init",
    "local_rank",
    "local_size",
    "rank",
    "shutdown",
    "size",
}


def __getattr__(name: str) -> Any:
    if name == "run":
        from horovod.runner import run  # not before it is asked for: it costs imports

        globals()["run"] = run
        return run
    # PyTorch Lightning 1.5 finds out by hasattr(horovod, "torch") whether there is Horovod.
    if name == "torch":
        try:
            return importlib.import_module("horovod.torch")
        except ImportError as error:
            raise AttributeError(f"horovod.torch can't be imported: {error}") from error
    if name in _OF_FRAMEWORKS:
        _missing.hide_frames()
    hint = ": `import horovod.torch as hvd`, or that of your framework, has it" if name in _OF_FRAMEWORKS else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted([*globals(), "run"])
