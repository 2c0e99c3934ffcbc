"""What the functions that run jobs on engines (Spark, Dask) have in common."""

import sys
import time
from collections.abc import Collection
from typing import Any, NamedTuple, Optional


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
        """Raises TypeError for an environment that is not one."""
        if self.env is not None and not isinstance(self.env, dict):
            raise TypeError(f"env argument must be a dict, not {type(self.env)}: {self.env}")

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
