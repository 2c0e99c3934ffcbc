"""Where the headers and the library for programs in C and C++ lie."""

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _folder(*names: str) -> str:
    path = os.path.join(_PACKAGE, *names)
    if not os.path.isdir(path):
        raise FileNotFoundError(
            f"{path} is not there: this is Horovod's source tree, not its wheel; tools/install PREFIX makes such a folder"
        )
    return path


def include_dir() -> str:
    """The folder for ``-I``, with ``horovod/rendezvous.h`` and ``.hpp`` in it.

    Raises FileNotFoundError.
    """
    return _folder("include")


def library_dir() -> str:
    """The folder with ``libhvd_rendezvous.so``. Raises FileNotFoundError."""
    return _folder("lib")


def cmake_dir() -> str:
    """The value of ``horovod-rendezvous_DIR`` for ``find_package(horovod-rendezvous)``. Raises
    FileNotFoundError."""
    return _folder("lib", "cmake", "horovod-rendezvous")


def pkg_config_dir() -> str:
    """The folder for PKG_CONFIG_PATH, with ``horovod-rendezvous.pc``. Raises FileNotFoundError."""
    return _folder("lib", "pkgconfig")
