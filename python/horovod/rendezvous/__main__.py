"""``python -m horovod.rendezvous``: prints where the rendezvous server's C and C++ files are."""

import argparse
import sys

from horovod.rendezvous import _folders

_FOLDERS = {
    "--include-dir": (_folders.include_dir, "with horovod/rendezvous.h and horovod/rendezvous.hpp"),
    "--library-dir": (_folders.library_dir, "with libhvd_rendezvous.so"),
    "--cmake-dir": (_folders.cmake_dir, "for cmake -Dhorovod-rendezvous_DIR="),
    "--pkg-config-dir": (_folders.pkg_config_dir, "for PKG_CONFIG_PATH"),
}


def main() -> int:
    """Prints the requested folder. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m horovod.rendezvous", description="Prints where the C and C++ parts of horovod.rendezvous are."
    )
    group = parser.add_mutually_exclusive_group(required=True)
    for option, (_, text) in _FOLDERS.items():
        group.add_argument(option, dest="folder", action="store_const", const=option, help=f"the folder {text}")
    try:
        print(_FOLDERS[parser.parse_args().folder][0]())
    except FileNotFoundError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
