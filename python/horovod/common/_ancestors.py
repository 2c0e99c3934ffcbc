"""The ancestors of this process: its parent, the parent's parent, and so on, as far as they are visible."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Ancestor(NamedTuple):
    pid: int
    words: list[str]  # its command line
    started: int  # clock ticks since the machine was started; with the pid unlike any other process's there

    @property
    def program(self) -> str:
        """The name of the program's file; if the process has set a title, the part before the colon."""
        return os.path.basename(self.words[0].partition(":")[0])

    def option(self, name: str) -> str:
        """Returns the word that follows `name` on the command line; "" if there is none."""
        return self.words[self.words.index(name) + 1] if name in self.words[:-1] else ""


def ancestors() -> Iterator[Ancestor]:
    """Returns the ancestors, nearest first. The list ends without an error at one that can't be read, because it has ended or
    belongs to another user.
    """
    pid = os.getppid()
    with contextlib.suppress(OSError, IndexError, ValueError):
        while pid > 1:
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").split("\0")
            parent, *more = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1:]
            yield Ancestor(pid, words, int(more[17]))
            pid = int(parent)
