"""Messages to the user on stderr."""

import sys


def say(text: str) -> None:
    """Prints one line to stderr.

    Args:
      text: the line, without "Horovod: ", which is put in front.
    """
    print("Horovod: " + text, file=sys.stderr, flush=True)
