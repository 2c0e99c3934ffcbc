"""Adoption of a running process as a worker of a job: its agent, and the protocol between the two."""

import contextlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from subprocess import PIPE
from typing import Any, Callable, Optional, Union

from horovod.runner._child_process import ChildProcess, private_file
from horovod.runner._programs import find_program

_LEAST_GRACE = 5.0  # s, as an agent's
_REFUSED = 2  # an agent's exit code


class Refused(RuntimeError):
    """The process can't take part in a job, and could not at another time either."""


class Adoption:
    """This process as a worker of the job whose daemon listens at `address`.

    It starts an agent for this process, which joins the job. A process may take part in several jobs, one after another, each
    with a new object. All methods may be called from any thread, but not in a process that was forked later.

    Args:
      address: HOST:PORT of the job's daemon.
      credentials: the content of the daemon's token file; secret.
      host: the unique name of this participant in the job; None: the machine's name.
      machine: participants of one machine share local ranks; None: the agent determines it.
      on_stop: called with a number of seconds, on a thread of this object, if the job ends or asks this process to leave, or if
        the agent was killed. :meth:`exit` must be called within that time, or the process is killed. None: the process sends
        itself SIGTERM.
      network_interfaces: names or networks that this process may use for the job, as a list or one string with commas; None:
        the way to the daemon.
      start_timeout: the time in seconds for the daemon to be reached; None: the agent's default.

    Raises FileNotFoundError if there is no horovod-agent.
    """

    def __init__(
        self,
        address: str,
        credentials: str,
        host: Optional[str] = None,
        machine: Optional[str] = None,
        on_stop: Optional[Callable[[float], None]] = None,
        network_interfaces: Union[str, Sequence[str], None] = None,
        start_timeout: Optional[float] = None,
    ) -> None:
        self._on_stop = on_stop if on_stop is not None else _terminate
        self._changed = threading.Condition()
        self._variables: Optional[dict[str, Optional[str]]] = None  # that the worker is to have
        self._error = ""  # why the agent ended
        self._ended = False  # the agent writes no more
        self._replaced: Optional[dict[str, Optional[str]]] = None  # the variables' earlier values
        self._leaves = False  # or has left
        if isinstance(network_interfaces, str):
            network_interfaces = [network_interfaces]
        options = {
            "--join": address,
            "--host": host,
            "--machine": machine,
            "--network-interfaces": ",".join(network_interfaces or ()),
            "--start-timeout": start_timeout,
            "--adopt": os.getpid(),
        }
        arguments = [str(word) for option in options.items() if option[1] for word in option]
        with private_file(credentials) as file:
            self._agent = ChildProcess(
                [find_program("horovod-agent"), "--token-file", f"/proc/self/fd/{file}", *arguments],
                stdin=PIPE,
                stdout=PIPE,
                pass_fds=[file],
            )
        # The agent's wait() must not wait for this thread: on_stop, which it calls, may call exit().
        threading.Thread(target=self._listen, name="horovod-adoption", daemon=True).start()

    def wait_for_start(self, timeout: Optional[float] = None) -> None:
        """Waits until the job takes this process as a worker, and sets the variables in os.environ that a started worker has. After
        that hvd.init() may be called.

        Raises:
          TimeoutError: the process is not taken yet.
          RuntimeError: the agent has ended; the text says why. Refused: another attempt would end in the same way.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._variables is not None or self._ended, timeout):
                raise TimeoutError(f"the job has not started this process within {timeout:g} s")
            if self._variables is None:
                code = self._agent.wait()
                reason = self._error or f"horovod-agent ended with code {code}"
                kind = Refused if code == _REFUSED else RuntimeError
                raise kind(f"this process could not join the job: {reason}")
            if self._replaced is None and not self._leaves:
                self._replaced = _set_variables(self._variables)

    def drain(self) -> None:
        """Makes this process leave an elastic job without the loss of a step: the job asks it, like the others, to leave its world."""
        self._agent.send_signal(signal.SIGTERM)

    def exit(self, code: int = 0, timeout: Optional[float] = None, error: Optional[BaseException] = None) -> int:
        """Leaves the world, then the job. `code` is 0 if the work is done, or another one for an `error` that ended it. Removes the
        variables that :meth:`wait_for_start` has set, and waits for the agent, which ends with a job of fixed size, or at once in
        an elastic job. Later calls only wait.

        Call it on the thread that runs collectives. Returns the job's exit code. Raises subprocess.TimeoutExpired after `timeout`
        seconds.
        """
        with self._changed:
            first, self._leaves = not self._leaves, True
        if first:
            self._leave(code, error)
        return self._agent.wait(timeout)

    def _leave(self, code: int, error: Optional[BaseException]) -> None:
        basics = sys.modules.get("horovod.common.basics")
        try:
            if basics is not None:
                basics.leave(error)
        except BaseException:  # Ctrl-C, because leaving waits for the other ranks
            code = code or 1
            raise
        finally:
            with self._changed:
                if self._replaced is not None:
                    _set_variables(self._replaced)
                    self._replaced = None
            self._say({"exit": code})

    def _say(self, words: Mapping[str, int]) -> None:
        assert self._agent.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._agent.stdin.write(json.dumps(words).encode() + b"\n")
            self._agent.stdin.flush()

    def _listen(self) -> None:
        told_to_stop = False
        try:
            for said in self._lines():
                with self._changed:
                    self._variables = said.get("start", self._variables)
                    self._error = said.get("error", self._error)
                    self._changed.notify_all()
                if "stop" in said:
                    told_to_stop = True
                    self._stop(said["stop"])
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
                was_killed = self._replaced is not None and not told_to_stop
        if was_killed:
            self._stop(_LEAST_GRACE)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Yields the lines that the agent writes. A line that the agent's end has cut off is dropped."""
        assert self._agent.stdout is not None
        with self._agent.stdout as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def _stop(self, seconds: float) -> None:
        try:
            self._on_stop(seconds)
        except BaseException:  # also SystemExit: the agent must find a reader
            traceback.print_exc(file=sys.stderr)


def _terminate(_seconds: float) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _set_variables(values: Mapping[str, Optional[str]]) -> dict[str, Optional[str]]:
    """Sets variables of this process, or removes those whose value is None. Returns the values that undo it."""
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before
