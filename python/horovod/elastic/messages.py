"""Messages to the user on stderr."""

import sys


def say(text: str) -> None:
    """Prints one line to stderr."""
    print("Horovod: " + text, file=sys.stderr, flush=True)
