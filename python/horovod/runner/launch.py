"""The commands that come with this package: each turns into the program of its name."""

import argparse
import os
import subprocess
import sys
from typing import Any, NoReturn, Optional

from horovod.runner import _jobs, _parser
from horovod.runner._programs import find_program


def _run(settings: Any) -> Optional[list[Any]]:
    """Runs the job of a :class:`horovod.runner._HorovodArgs`; see there."""
    return _jobs.run_settings(settings)


def _run_elastic(settings: Any) -> Optional[list[Any]]:
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
    settings = _parser.parse(sys.argv[1:])
    if settings.check_build:
        sys.exit(subprocess.call([find_program("horovodrun"), "--check-build"]))
    return settings


def _become(name: str, arguments: list[str]) -> NoReturn:
    try:
        program = find_program(name)
    except FileNotFoundError as error:
        sys.exit(f"horovod: {error}")
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
