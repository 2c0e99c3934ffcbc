"""The arguments that the functions for jobs on engines (Spark, Ray, Dask) share, and their checks."""

import math
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Optional

MOST_SECONDS = 7 * 86400 - 60  # the daemon's limit, minus the time that is added for it


class Options(NamedTuple):
    """Options of a job's processes, and of the output that is shown."""

    env: Optional[dict[str, str]]
    stdout: Any
    stderr: Any
    verbose: int
    nics: Optional[Collection[str]]
    timestamps: bool
    executable: Optional[str]

    def check(self) -> None:
        """Raises TypeError or ValueError for an invalid environment or output."""
        if self.env is not None and not isinstance(self.env, dict):
            raise TypeError(f"env must be a dict, not {type(self.env).__name__}: pass dict(env)")
        check_variables("env", self.env or {})
        check_networks(self.nics)
        check_verbosity(self.verbose)
        if self.executable is not None and not isinstance(self.executable, str):
            raise TypeError(f"executable must be the path of a Python: Got {self.executable!r}")
        for name, stream in (("stdout", self.stdout), ("stderr", self.stderr)):
            if stream is not None and not hasattr(stream, "write"):
                raise TypeError(f"{name} must be a file or another object with write(): Got {stream!r}")

    def networks(self) -> tuple[str, ...]:
        """The interfaces or networks that processes may use; empty: any."""
        return (self.nics,) if isinstance(self.nics, str) else tuple(sorted(self.nics or ()))

    def show(self, stream: int, text: str) -> None:
        """Writes lines of the processes, and of agents if these are shown."""
        target = (self.stdout or sys.stdout) if stream == 1 else (self.stderr or sys.stderr)
        prefix = time.asctime() if self.timestamps else ""
        for line in text.splitlines(keepends=True):
            if self.verbose >= 2 or not line.startswith("horovod-agent: "):
                target.write(prefix + line)
        target.flush()

    def report(self, line: str) -> None:
        """Writes a line of the daemon."""
        if self.verbose >= 1:
            print(line, file=self.stderr or sys.stderr, flush=True)


def check_variables(name: str, variables: Mapping[Any, object]) -> None:
    """Raises TypeError or ValueError, with the argument's name, for invalid environment variables."""
    for variable, value in variables.items():
        if not isinstance(variable, str) or not isinstance(value, str):
            raise TypeError(f"{name}: variables and their values must be strings: Got {variable!r}: {value!r}")
        if not variable or "=" in variable or "\0" in variable + value:
            raise ValueError(f"{name}: {variable!r}: {value!r} can't be a variable of a process")


def check_networks(nics: object) -> None:
    """Raises TypeError for invalid names of network interfaces."""
    names = [nics] if isinstance(nics, str) else nics
    if names is None or (isinstance(names, Collection) and all(isinstance(name, str) for name in names)):
        return
    raise TypeError(f"nics must be a list of names of network interfaces: Got {nics!r}")


def check_function(fn: object, name: str = "fn") -> None:
    """Raises TypeError, with the argument's name, for a value that is not callable."""
    if not callable(fn):
        raise TypeError(f"{name} must be a function: Got {fn!r}")


def check_call(fn: object, args: object, kwargs: object) -> None:
    """Raises TypeError if ``fn(*args, **kwargs)`` is not a valid call."""
    check_function(fn)
    check_arguments(args, kwargs)


def check_arguments(args: object, kwargs: object, prefix: str = "") -> None:
    """Raises TypeError, with the argument's name, for arguments that are not a list and a dict. `prefix` precedes the names."""
    if args is not None and (isinstance(args, (str, bytes)) or not isinstance(args, Iterable)):
        raise TypeError(f"{prefix}args must be a list or tuple of the function's arguments: Got {args!r}")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"{prefix}kwargs must be a dict of the function's arguments: Got {kwargs!r}")


def check_flags(**flags: object) -> None:
    """Raises TypeError, with the argument's name, for a value that is neither True nor False."""
    for name, value in flags.items():
        if value not in (True, False):
            raise TypeError(f"{name} must be True or False: Got {value!r}")


def check_amounts(**amounts: Any) -> None:
    """Raises TypeError or ValueError, with the argument's name, for an invalid amount of a resource. None: not given."""
    for name, value in amounts.items():
        if value is not None and not is_number(value):
            raise TypeError(f"{name} must be a number: Got {value!r}")
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(f"{name} is {value}: it must be 0 or more")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_whole_numbers(**numbers: object) -> None:
    """Raises TypeError, with the argument's name, for a value that is not a whole number. None: not given."""
    for name, value in numbers.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise TypeError(f"{name} must be a whole number: Got {value!r}")


def check_verbosity(verbose: object) -> None:
    """Raises TypeError unless `verbose` is a level, a whole number. True is 1: Horovod's examples give it."""
    if not isinstance(verbose, bool):
        check_whole_numbers(verbose=verbose)


def check_counts(least: int = 1, **counts: Any) -> None:
    """Raises as :func:`check_whole_numbers`, and ValueError for a number less than `least`."""
    check_whole_numbers(**counts)
    for name, value in counts.items():
        if value is not None and value < least:
            raise ValueError(f"{name} is {value}: it must be {least} or more")


def check_seconds(**times: Any) -> None:
    """Raises TypeError or ValueError, with the argument's name, for an invalid time in seconds. None: not given."""
    for name, value in times.items():
        if value is None:
            continue
        if not is_number(value):
            raise TypeError(f"{name} must be a number of seconds: Got {value!r}")
        if not 0 < value <= MOST_SECONDS:
            raise ValueError(f"{name} must be a number of seconds, more than 0 and at most a week: Got {value}")
