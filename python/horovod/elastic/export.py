"""Writes a checkpoint of an elastic state as a file that torch.load reads: ``python -m horovod.elastic.export CHECKPOINT [OUT]``."""

import argparse
import importlib
import sys
from typing import Optional

from horovod.common._texts import one_line
from horovod.elastic import reading

_DESCRIPTION = (
    "Writes a checkpoint as a dict that torch.load reads: the state dicts of models and optimizers, and the plain values, by "
    "their names in the state."
)

_WRONG = 2  # the exit code for a wrong command line, which argparse has, too


def main(arguments: Optional[list[str]] = None) -> int:
    """Runs the command, and returns its exit code: 0, 1 for a failure, 2 for a wrong command line or a checkpoint that is not there.

    Args:
      arguments: the words after the program's name; None: those of this process.
    """
    parser = argparse.ArgumentParser("python -m horovod.elastic.export", description=_DESCRIPTION)
    parser.add_argument(
        "checkpoint", help="a .hvd file, or a folder or URL with checkpoints, of which the newest is taken"
    )
    parser.add_argument("out", nargs="?", help="the file to write; without it the content is only listed")
    given = parser.parse_args(arguments)
    try:
        # By their names, because this package works without PyTorch.
        torch, loading = map(importlib.import_module, ("torch", "horovod.torch._loading"))
    except ImportError as error:
        return _fail(f"it needs PyTorch: {error}")
    try:
        found = reading.newest_in(loading.TREES, given.checkpoint)
        values = reading.values_in(found)
        if given.out is not None:
            torch.save(values, given.out)
    except FileNotFoundError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _fail(reason, _WRONG)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        return _fail(str(error).splitlines()[0])
    print(f"{found.path}: commit {found.commit}, run {found.origin.run}")
    for name, value in values.items():
        print(f"  {one_line(name)}: {_described(value)}")
    return 0


def _fail(reason: str, status: int = 1) -> int:
    print(f"horovod.elastic.export: {one_line(reason)}", file=sys.stderr)
    return status


def _described(value: object) -> str:
    if isinstance(value, dict):
        return f"{len(value)} entries"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{type(value).__name__} of {str(value.dtype).removeprefix('torch.')}, shape {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{type(value).__name__} of {len(text)} characters"


if __name__ == "__main__":
    sys.exit(main())
