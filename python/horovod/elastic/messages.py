"""Messages to the user on stderr."""

import sys

from horovod.common._texts import one_line


def say(text: str) -> None:
    """Prints one line to stderr.

    Args:
      text: the line, without "Horovod: ", which is put in front. Control characters, which names and files may have, are escaped.
    """
    print("Horovod: " + one_line(text), file=sys.stderr, flush=True)
