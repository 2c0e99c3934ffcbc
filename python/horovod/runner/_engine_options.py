"""What the functions that run jobs on engines (Spark, Dask) have in common."""

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Optional

_MOST_SECONDS = 7 * 86400 - 60  # what the daemon takes, without what is added for it


class Options(NamedTuple):
    """Of the processes, and of what is shown of them."""

    env: Optional[dict[str, str]]
    stdout: Any
    stderr: Any
    verbose: int
    nics: Optional[Collection[str]]
    timestamps: bool
    executable: Optional[str]

    def check(self) -> None:
        """Raises TypeError or ValueError for an environment or output that is not one."""
        if self.env is not None and not isinstance(self.env, dict):
            raise TypeError(f"env argument must be a dict, not {type(self.env)}: {self.env}")
        check_variables("env", self.env or {})
        for name, stream in (("stdout", self.stdout), ("stderr", self.stderr)):
            if stream is not None and not hasattr(stream, "write"):
                raise TypeError(f"{name} must be a file or another object with write(): Got {stream!r}")

    def networks(self) -> tuple[str, ...]:
        """The interfaces or networks that processes may use; empty: any."""
        return (self.nics,) if isinstance(self.nics, str) else tuple(sorted(self.nics or ()))

    def show(self, stream: int, text: str) -> None:
        """Writes lines of the processes, and of agents if that is wanted."""
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


def check_variables(name: str, variables: Mapping[Any, Any]) -> None:
    """Raises TypeError or ValueError, which name the argument, for what can't be variables of a process."""
    for variable, value in variables.items():
        if not isinstance(variable, str) or not isinstance(value, str):
            raise TypeError(f"{name}: variables and their values must be strings: Got {variable!r}: {value!r}")
        if not variable or "=" in variable or "\0" in variable + value:
            raise ValueError(f"{name}: {variable!r}: {value!r} can't be a variable of a process")


def check_call(fn: Any, args: Any, kwargs: Any) -> None:
    """Raises TypeError if ``fn(*args, **kwargs)`` is no call."""
    if not callable(fn):
        raise TypeError(f"fn must be a function: Got {fn!r}")
    if args is not None and not isinstance(args, Iterable):
        raise TypeError(f"args must be a list or tuple of the function's arguments: Got {args!r}")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"kwargs must be a dict of the function's arguments: Got {kwargs!r}")


def check_whole_numbers(**numbers: Any) -> None:
    """Raises TypeError, which names the argument, for what is none. None: not given."""
    for name, value in numbers.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise TypeError(f"{name} must be a whole number: Got {value!r}")


def check_counts(least: int = 1, **counts: Any) -> None:
    """The same, and ValueError for less than `least`."""
    check_whole_numbers(**counts)
    for name, value in counts.items():
        if value is not None and value < least:
            raise ValueError(f"{name} is {value}: it must be {least} or more")


def check_seconds(**times: Any) -> None:
    """Raises TypeError or ValueError, which name the argument, for what is no time. None: not given."""
    for name, value in times.items():
        if value is None:
            continue
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"{name} must be a number of seconds: Got {value!r}")
        if not 0 < value <= _MOST_SECONDS:
            raise ValueError(f"{name} must be a number of seconds, more than 0 and at most a week: Got {value}")
