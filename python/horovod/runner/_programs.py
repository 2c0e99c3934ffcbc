"""Where the programs of this package lie."""

import os
import shutil

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _is_program(path: str) -> bool:
    """Whether `path` is machine code: one of this package's own scripts would only come back
    here."""
    if not os.access(path, os.X_OK) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def find_program(name: str) -> str:
    """The path of a Horovod program: in ``horovod/bin`` of this package, else on the PATH.

    Raises FileNotFoundError.
    """
    own = os.path.join(_PACKAGE, "bin", name)
    if _is_program(own):
        return own
    for folder in os.get_exec_path():
        found = shutil.which(name, path=folder)
        if found is not None and _is_program(found):
            return found
    raise FileNotFoundError(f"{name} is neither in {os.path.dirname(own)} nor on the PATH")
