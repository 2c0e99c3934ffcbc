"""The folders of the headers and the library for programs in C and C++."""

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
    """Returns the folder for ``-I``, which contains ``horovod/rendezvous.h`` and ``horovod/rendezvous.hpp``.

    Raises:
      FileNotFoundError: this package is not installed from a wheel.
    """
    return _folder("include")


def library_dir() -> str:
    """Returns the folder that contains ``libhvd_rendezvous.so``.

    Raises:
      FileNotFoundError: this package is not installed from a wheel.
    """
    return _folder("lib")


def cmake_dir() -> str:
    """Returns the value of ``horovod-rendezvous_DIR`` for ``find_package(horovod-rendezvous)``.

    Raises:
      FileNotFoundError: this package is not installed from a wheel.
    """
    return _folder("lib", "cmake", "horovod-rendezvous")


def pkg_config_dir() -> str:
    """Returns the folder for PKG_CONFIG_PATH, which contains ``horovod-rendezvous.pc``.

    Raises:
      FileNotFoundError: this package is not installed from a wheel.
    """
    return _folder("lib", "pkgconfig")
