"""The commands that come with this package: each turns into the program of its name."""

import argparse
import os
import shutil
import subprocess
import sys
from typing import Any, List, NoReturn, Optional

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _is_program(path: Optional[str]) -> bool:
    """Whether `path` is machine code: one of this package's own scripts would only come back
    here."""
    if path is None or not os.access(path, os.X_OK) or not os.path.isfile(path):
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
        if _is_program(found):
            return found
    raise FileNotFoundError(
        "{} is neither in {} nor on the PATH".format(name, os.path.dirname(own))
    )


def _run(settings: Any) -> Optional[List[Any]]:
    """Runs the job of a :class:`horovod.runner._HorovodArgs`; see there."""
    from horovod import runner

    return runner._run_settings(settings)


def _run_elastic(settings: Any) -> Optional[List[Any]]:
    """The same, for an elastic job in any case: one of at least as many processes as it starts
    with, if nothing else is said."""
    elastic = ("min_num_proc", "max_num_proc", "host_discovery_script")
    if all(getattr(settings, name, None) is None for name in elastic):
        settings.min_num_proc = settings.num_proc
    return _run(settings)


def parse_args() -> argparse.Namespace:
    """The settings that the command line of this process makes, for :func:`_run`. With
    --check-build it prints that table and ends the process.

    Raises ValueError for a setting that is out of its range.
    """
    from horovod.runner import _parser

    settings = _parser.parse(sys.argv[1:])
    if settings.check_build:
        sys.exit(subprocess.call([find_program("horovodrun"), "--check-build"]))
    return settings


def _become(name: str, arguments: List[str]) -> NoReturn:
    try:
        program = find_program(name)
    except FileNotFoundError as error:
        sys.exit("horovod: {}".format(error))
    os.execv(program, [program] + arguments)


def run_commandline() -> NoReturn:
    """The command ``horovodrun``."""
    _become("horovodrun", sys.argv[1:])


def agent_commandline() -> NoReturn:
    """The command ``horovod-agent``."""
    _become("horovod-agent", sys.argv[1:])


def rendezvousd_commandline() -> NoReturn:
    """The command ``horovod-rendezvousd``."""
    _become("horovod-rendezvousd", sys.argv[1:])


if __name__ == "__main__":
    run_commandline()
