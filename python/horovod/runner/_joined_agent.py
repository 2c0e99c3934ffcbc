"""A horovod-agent as a child of this process, for jobs whose agents are started by an engine."""

import contextlib
import json
import signal
from collections.abc import Sequence
from functools import partial
from io import BufferedReader
from subprocess import PIPE
from typing import IO, Callable, Optional, cast

from horovod.runner import _handover
from horovod.runner._child_process import ChildProcess, private_file
from horovod.runner._job import JoinInfo
from horovod.runner._programs import find_program

STDOUT, STDERR = 1, 2

Output = Callable[[int, str], None]


class JoinedAgent:
    """An agent that starts its own workers. It ends with this process. Thread-safe.

    Args:
      info: what it needs to join the job.
      command: the command of its workers.
      host: its name in the job, which no other agent has.
      env: the workers' environment.
      output: called with the number of a stream (1, 2) and text of whole lines, on threads of this object. Its exceptions are
        dropped.
      flags: further arguments of horovod-agent.
    """

    def __init__(
        self,
        info: JoinInfo,
        command: Sequence[str],
        host: str,
        env: dict[str, str],
        output: Output,
        flags: Sequence[str] = (),
    ) -> None:
        with private_file(info.credentials) as token, private_file(info.worker_stdin) as stdin:
            self._process = ChildProcess(
                [
                    *(find_program("horovod-agent"), "--join", info.address, "--host", host, "--end-with-parent"),
                    *("--token-file", f"/proc/self/fd/{token}", "--worker-stdin", f"/proc/self/fd/{stdin}"),
                    *(*flags, "--", *command),
                ],
                env=env,
                stdout=PIPE,
                stderr=PIPE,
                pass_fds=[token, stdin],
                start_new_session=False,
            )
        for number, pipe in ((STDOUT, self._process.stdout), (STDERR, self._process.stderr)):
            self._process.read(pipe, partial(_forward, number, output), f"horovod output {number}")

    def wait(self) -> int:
        """Returns the agent's exit code, after it has ended and all output was passed on."""
        return self._process.wait()

    def drain(self) -> None:
        """Makes this agent leave an elastic job, without the loss of a step. A second call ends it at once."""
        self._process.send_signal(signal.SIGTERM)


def _forward(number: int, output: Output, pipe: IO[bytes]) -> None:
    stream = cast(BufferedReader, pipe)
    while data := stream.read1(1 << 16):
        if not data.endswith(b"\n"):
            data += stream.readline()
        # An output that fails must not stop the agent, which would wait for a reader, or end without one.
        with contextlib.suppress(BaseException):  # also SystemExit
            output(number, data.decode(errors="replace"))


def output_to_caller(info: JoinInfo, local: Output) -> Output:
    """Returns an output that shows lines in the process that started the job, or through `local` when that process can't be
    reached any more.
    """
    caller: Optional[_handover.Worker] = _handover.Worker.of(json.loads(info.worker_stdin), "")

    def show(number: int, text: str) -> None:
        nonlocal caller
        if caller is not None:
            try:
                return caller.put_output(number, text)
            except OSError:
                caller = None
        local(number, text)

    return show
