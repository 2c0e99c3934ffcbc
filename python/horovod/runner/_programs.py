"""The locations of the programs of this package."""

import os
import shutil

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _is_program(path: str) -> bool:
    """Returns whether `path` is machine code. The scripts that this package installs under the same names are not: they would
    call this module again.
    """
    if not os.access(path, os.X_OK) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def find_program(name: str) -> str:
    """Returns the path of a Horovod program: in ``horovod/bin`` of this package, or else on the PATH.

    Args:
      name: the program's name.

    Raises:
      FileNotFoundError: there is no such program.
    """
    own = os.path.join(_PACKAGE, "bin", name)
    if _is_program(own):
        return own
    for folder in os.get_exec_path():
        found = shutil.which(name, path=folder)
        if found is not None and _is_program(found):
            return found
    raise FileNotFoundError(f"{name} is neither in {os.path.dirname(own)} nor on the PATH")
