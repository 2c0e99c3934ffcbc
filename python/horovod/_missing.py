"""Explanations of failed imports: of modules of Horovod that this version does not have, and of frameworks that are not
installed. The ImportError is one line.
"""

import importlib
import importlib.abc
import sys
from typing import Any, NoReturn

# The modules of Horovod that this version lacks, with all their submodules, and what each lacks. Remove a row when its
# package exists.
_MODULES = {
    "horovod.spark": "no such part of its layer for Spark; horovod.spark.run and horovod.spark.run_elastic are there",
    "horovod.tensorflow.data": "no tf.data service; dataset.shard(hvd.size(), hvd.rank()) gives each rank its own part",
    "horovod.runner.mpi_run": "no MPI; horovod.run and horovodrun start the workers",
    "horovod.runner.js_run": "no jsrun; horovod.run and horovodrun start the workers",
    "horovod.runner.http": "no HTTP server and no RendezvousServer; horovod.rendezvous embeds the rendezvous (docs/embedding.md)",
    "horovod.runner.elastic": "no elastic driver in Python; horovodrun's flags are its settings",
    # All other modules of it.
    "horovod.runner": "a launcher that is not written in Python; horovod.run and horovodrun start the workers",
}


def _reason(name: str) -> str:
    """Returns why there is no such module; "" if it is not one of Horovod's missing modules."""
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        prefix = ".".join(parts[:length])
        if prefix in _MODULES:
            return "this version of Horovod has " + _MODULES[prefix]
    return ""


def explain(name: str) -> NoReturn:
    """Raises the ImportError for one of the missing modules."""
    # Without `name`: `from horovod import keras` would drop the text of an error that has it.
    raise ModuleNotFoundError(f"{name}: {_reason(name)}")


class _Finder(importlib.abc.MetaPathFinder):
    """An import finder that is asked last, for modules that no other finder has found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if not name.startswith("horovod.") or not _reason(name):
            return
        # importlib.util.find_spec only asks whether there is one.
        if sys._getframe(2).f_code.co_name != "find_spec":
            explain(name)


def first_line(error: Exception) -> str:
    """Returns the first line of `error`'s text."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def framework(module: str, needed: str, failures: type[Exception] = ImportError) -> Any:
    """Imports the package that one of Horovod's packages supports. If the import raises one of `failures`, raises an ImportError
    with `needed` and the reason.
    """
    hide_frames()
    try:
        return importlib.import_module(module)
    except failures as error:
        raise ImportError(f"{needed} ({first_line(error)})") from None


def hide_frames() -> None:
    """Leaves this package's frames out of tracebacks. Those before a framework's package is imported are of scripts that ask for
    something that is not there.
    """
    from horovod.common import _tracebacks  # not before it is asked for: it costs imports

    _tracebacks.fold_from_now_on()


def explain_imports() -> None:
    """Installs the finder that explains imports of missing modules."""
    sys.meta_path.append(_Finder())
