"""Shell commands that end when this process ends."""

import codecs
import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from subprocess import PIPE, TimeoutExpired
from typing import Any, Optional

from horovod.runner._child_process import ChildProcess
from horovod.runner._python import WITHOUT_FOLDER

GRACEFUL_TERMINATION_TIME_S = 5

# Runs the command in a process group, and ends the group when stdin ends, for whatever reason its writer has ended.
_GUARD = f"""
{WITHOUT_FOLDER}
import os, select, signal, subprocess, sys
grace = float(sys.argv[1])
command = subprocess.Popen(sys.argv[2], shell=True, stdin=subprocess.DEVNULL, start_new_session=True)
ended = os.pidfd_open(command.pid)
ready, _, _ = select.select([ended, 0], [], [])
if ended not in ready:
    os.killpg(command.pid, signal.SIGTERM)
    select.select([ended], [], [], grace)
try:
    os.killpg(command.pid, signal.SIGKILL)
except ProcessLookupError:
    pass
code = command.wait()
sys.exit(code if code >= 0 else 128 - code)
"""


def execute(
    command: str,
    env: Optional[dict[str, str]] = None,
    stdout: object = None,
    stderr: object = None,
    index: object = None,
    events: Optional[Sequence[threading.Event]] = None,
    prefix_output_with_timestamp: bool = False,
) -> int:
    """Runs a command in a shell and forwards its output, line by line. Lines that a stream does not take are dropped.

    All processes of the command's group are terminated, and after GRACEFUL_TERMINATION_TIME_S seconds killed, when one of
    `events` is set, when an exception such as KeyboardInterrupt ends this call, or when this process ends for any reason.

    Args:
      command: the shell command.
      env: the command's environment; None: this process's.
      stdout: the text stream for its standard output; None: ``sys.stdout``.
      stderr: the text stream for its standard error; None: ``sys.stderr``.
      index: if not None, each line begins with ``[index]<stdout>:`` or ``[index]<stderr>:``.
      events: events that terminate the command.
      prefix_output_with_timestamp: whether the time precedes the index.

    Returns:
      The exit code; 128 + N if signal N ended the command.

    Example:
      >>> from horovod.runner.common.util.safe_shell_exec import execute
      >>> execute("exit 3")
      3
    """
    guard = ChildProcess(
        [sys.executable, "-S", "-c", _GUARD, str(GRACEFUL_TERMINATION_TIME_S), command],
        env=env,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert guard.stdin is not None  # a pipe
    for name, pipe, stream in (("stdout", guard.stdout, stdout), ("stderr", guard.stderr, stderr)):
        forward = partial(
            prefix_connection,
            target=stream or getattr(sys, name),
            prefix=name,
            index=index,
            prefix_output_with_timestamp=prefix_output_with_timestamp,
        )
        guard.read(pipe, forward, f"horovod {name}")
    try:
        while guard.poll() is None and not any(event.is_set() for event in events or ()):
            with contextlib.suppress(TimeoutExpired):
                guard.wait(0.1 if events else None)
    finally:
        guard.stdin.close()
        guard.wait()
    return guard.returncode


def prefix_connection(source: Any, target: Any, prefix: Any, index: Any, prefix_output_with_timestamp: bool) -> None:
    """Copies text from a pipe to a text stream, line by line, until the pipe ends. A carriage return ends a line too. Bytes that
    are not valid UTF-8 become U+FFFD. Lines that the stream does not take, because it raises an exception, are dropped.

    Args:
      source: the pipe, an object with a file descriptor.
      target: the text stream.
      prefix: the stream's name in ``[index]<prefix>:``, which precedes each line; None: nothing does.
      index: the index in it; None: nothing precedes a line.
      prefix_output_with_timestamp: whether the time precedes the index.
    """

    def write(line: str) -> None:
        if index is not None and prefix is not None:
            now = time.asctime(time.localtime(time.time())) if prefix_output_with_timestamp else ""
            line = f"{now}[{index}]<{prefix}>:{line}"
        # A stream that fails must not stop the command, which would wait for a reader.
        with contextlib.suppress(BaseException):  # also SystemExit
            target.write(line)
            target.flush()

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    while True:
        data = os.read(source.fileno(), 1 << 16)
        *lines, rest = re.split("(?<=[\r\n])", rest + decoder.decode(data, final=not data))
        for line in lines:
            write(line)
        if not data:
            break
    if rest:
        write(rest)
    source.close()
