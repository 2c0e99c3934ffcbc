"""The processes above this one: its parent, that one's parent, and so on, as far as they can be seen from here."""

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
        """The file's name; what stands before a colon, if it has given itself a title."""
        return os.path.basename(self.words[0].partition(":")[0])

    def option(self, name: str) -> str:
        """The word that follows `name`; empty: there is none."""
        return self.words[self.words.index(name) + 1] if name in self.words[:-1] else ""


def ancestors() -> Iterator[Ancestor]:
    """The nearest first. Ends without an error where one can't be read: it may be gone, or another user's."""
    pid = os.getppid()
    with contextlib.suppress(OSError, IndexError, ValueError):
        while pid > 1:
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").split("\0")
            parent, *more = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1:]
            yield Ancestor(pid, words, int(more[17]))
            pid = int(parent)
