"""The commands of this package: each replaces this process by the program of its name."""

import argparse
import os
import subprocess
import sys
from typing import Any, NoReturn, Optional

from horovod.runner import _jobs, _parser
from horovod.runner._programs import find_program


def _run(settings: Any) -> Optional[list[Any]]:
    """Runs the job that a :class:`horovod.runner._HorovodArgs` describes."""
    return _jobs.run_settings(settings)


def _run_elastic(settings: Any) -> Optional[list[object]]:
    """Runs it as an elastic job in any case: if no limit is given, the minimum is the number of processes that it starts with."""
    elastic = ("min_num_proc", "max_num_proc", "host_discovery_script")
    if all(getattr(settings, name, None) is None for name in elastic):
        settings.min_num_proc = settings.num_proc
    return _run(settings)


def parse_args() -> argparse.Namespace:
    """Returns the settings that this process's command line describes, for :func:`_run`. With --check-build it prints the
    table of features and ends the process.

    Raises:
      ValueError: a setting is out of range.
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
    """Runs the command ``horovodrun`` in place of this process."""
    _become("horovodrun", sys.argv[1:])


def agent_commandline() -> NoReturn:
    """Runs the command ``horovod-agent`` in place of this process."""
    _become("horovod-agent", sys.argv[1:])


def rendezvousd_commandline() -> NoReturn:
    """Runs the command ``horovod-rendezvousd`` in place of this process."""
    _become("horovod-rendezvousd", sys.argv[1:])


if __name__ == "__main__":
    run_commandline()
