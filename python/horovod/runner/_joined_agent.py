"""A horovod-agent as a child of this process, for jobs whose agents are started by an engine."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import Callable, Optional, cast

from horovod.runner import _handover
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
            self._process = subprocess.Popen(
                [
                    *(find_program("horovod-agent"), "--join", info.address, "--host", host, "--end-with-parent"),
                    *("--token-file", f"/proc/self/fd/{token}", "--worker-stdin", f"/proc/self/fd/{stdin}"),
                    *(*flags, "--", *command),
                ],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[token, stdin],
            )
        streams = {STDOUT: self._process.stdout, STDERR: self._process.stderr}
        self._threads = [_forwarder(cast(BufferedReader, stream), number, output) for number, stream in streams.items()]

    def wait(self) -> int:
        """Returns the agent's exit code, after it has ended and all output was passed on."""
        status = self._process.wait()
        for thread in self._threads:
            thread.join()
        return status

    def drain(self) -> None:
        """Makes this agent leave an elastic job, without the loss of a step. A second call ends it at once."""
        self._process.send_signal(signal.SIGTERM)


@contextlib.contextmanager
def private_file(text: str) -> Iterator[int]:
    """Returns the descriptor of a file in memory that contains `text` and that only this user can read."""
    descriptor = os.memfd_create("horovod")
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _forwarder(stream: BufferedReader, number: int, output: Output) -> threading.Thread:
    def forward() -> None:
        with stream:
            while True:
                data = stream.read1(1 << 16)
                if not data:
                    return
                if not data.endswith(b"\n"):
                    data += stream.readline()
                # An output that fails must not stop the agent, which would wait for a reader, or end without one.
                with contextlib.suppress(BaseException):  # also SystemExit
                    output(number, data.decode(errors="replace"))

    thread = threading.Thread(target=forward, name=f"horovod output {number}", daemon=True)
    thread.start()
    return thread


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
