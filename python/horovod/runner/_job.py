"""A job whose agents are started by an engine (Spark, Ray, Dask, a batch scheduler): its horovod-rendezvousd, which is a child
of this process, and the function that its workers call.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from subprocess import DEVNULL, PIPE, TimeoutExpired
from typing import IO, Any, Callable, NamedTuple, Optional

from horovod.runner import _handover
from horovod.runner._addresses import join_host_port, split_host_port
from horovod.runner._child_process import ChildProcess
from horovod.runner._programs import find_program
from horovod.runner._tls_server import Credentials, TlsServer

_STOP_SECONDS = 30.0  # for the daemon to end the job, which takes it much less
_LINES_KEPT = 20  # of the daemon's stderr, for error messages
_DAEMON = "horovod-rendezvousd: "


class Limits(NamedTuple):
    """The options of the job's daemon; None: the daemon's default. The job is elastic if there is a minimum or maximum."""

    num_proc: int
    min_num_proc: Optional[int] = None
    max_num_proc: Optional[int] = None
    hosts: Optional[Sequence[str]] = None  # static jobs: the agents' names, one slot each, in the order of ranks
    start_timeout: Optional[float] = None  # seconds, as the next
    elastic_timeout: Optional[float] = None
    reset_limit: Optional[int] = None
    cooldown_range: Optional[tuple[float, float]] = None
    keep_host_order: bool = False  # `hosts` is the order of ranks also where a machine's are not neighbours

    def flags(self) -> list[str]:
        """Returns horovod-rendezvousd's arguments."""
        values: dict[str, Any] = {
            "--np": self.num_proc,
            "--min-np": self.min_num_proc,
            "--max-np": self.max_num_proc,
            "--hosts": ",".join(f"{host}:1" for host in self.hosts) if self.hosts else None,
            "--start-timeout": self.start_timeout,
            "--elastic-timeout": self.elastic_timeout,
            "--reset-limit": self.reset_limit,
        }
        flags = [text for flag, value in values.items() if value is not None for text in (flag, str(value))]
        if self.keep_host_order:
            flags.append("--keep-host-order")
        if self.cooldown_range is not None:
            flags += ["--blacklist-cooldown-range", *map(str, self.cooldown_range)]
        return flags


class JoinInfo(NamedTuple):
    """What an agent needs to take part in a job. Secret: it is passed as an argument of a task or actor, never in an environment or
    configuration.
    """

    address: str  # HOST:PORT of the daemon
    credentials: str  # the text of a token file
    worker_stdin: str  # how its workers reach the caller of the function; empty: there is none

    def __repr__(self) -> str:
        return f"JoinInfo({self.address})"


class Job:
    """The daemon of one job. It ends with this process, however this process ends. Thread-safe.

    Args:
      limits: the job's size and times.
      listen: numeric addresses of this machine, without ports, that agents reach.
      name: the name under which agents reach this machine; "": the first address.
      report: called with each line that the daemon writes, on a thread of this object; by default lines go to ``sys.stderr``.

    Raises:
      ValueError: the daemon rejects these arguments; the text says why.
      RuntimeError: the daemon can't be started.
    """

    def __init__(
        self,
        limits: Limits,
        listen: Sequence[str] = ("127.0.0.1",),
        name: str = "",
        report: Optional[Callable[[str], None]] = None,
    ) -> None:
        self._listen = list(listen)
        self._name = name or self._listen[0]
        self._report = report or _print_to_stderr
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._server: Optional[TlsServer] = None
        self._handover: Optional[_handover.Handover] = None
        self._worker_stdin = ""
        self._pid = os.getpid()
        self._stopping = threading.Lock()
        self._owner, daemons = socket.socketpair()
        with daemons, contextlib.ExitStack() as undo:
            undo.callback(self._owner.close)
            listeners = [text for one in self._listen for text in ("--listen", join_host_port(one, 0))]
            self._process = ChildProcess(
                [find_program("horovod-rendezvousd"), "--owner", str(daemons.fileno()), *listeners, *limits.flags()],
                stdout=DEVNULL,
                stderr=PIPE,
                pass_fds=[daemons.fileno()],
            )
            undo.pop_all()
        self._process.read(self._process.stderr, self._read_lines, "horovod job")
        self._started = self._read_first_line()

    def _read_first_line(self) -> dict[str, Any]:
        with self._owner.makefile("rb") as file:
            line = file.readline()
        if not line:
            status = self.wait()
            error = ValueError if status == 2 else RuntimeError
            raise error(self.last_line() or f"horovod-rendezvousd ended with status {status}")
        words: dict[str, object] = json.loads(line)
        return words

    def _read_lines(self, stderr: IO[bytes]) -> None:
        for data in stderr:
            line = data.decode(errors="replace").rstrip("\n")
            self._lines.append(line)
            # A reader that fails must not stop the daemon, which would wait for it.
            with contextlib.suppress(BaseException):  # also SystemExit
                self._report(line)

    @property
    def address(self) -> str:
        """``HOST:PORT`` at which agents reach the daemon."""
        _, port = split_host_port(self._started["addresses"][0])
        return join_host_port(self._name, port)

    @property
    def join_info(self) -> JoinInfo:
        """What agents need to join; secret."""
        return JoinInfo(self.address, self._started["credentials"], self._worker_stdin)

    @property
    def authority(self) -> str:
        """The certificate of the authority that has certified the daemon, as PEM text. Not secret."""
        return str(self._started["member"]["ca"])

    def serve(
        self,
        call: Callable[[], object],
        on_output: Optional[Callable[[int, str], None]] = None,
        tasks: Optional[_handover.Tasks] = None,
    ) -> None:
        """Starts to give out `call` to the job's workers, over the job's TLS; see :class:`_handover.Handover`. Call it once, before
        `join_info` is given to agents.
        """
        self._handover = _handover.Handover(call, on_output, tasks)
        listeners = [_listen_on(address) for address in self._listen]
        _LISTENERS.update(listeners)
        port = listeners[0].getsockname()[1]
        self._worker_stdin = json.dumps({**self._started["member"], "addresses": [join_host_port(self._name, port)]})
        self._server = self._handover.server(Credentials(**self._started["server"]), listeners)
        self._server.start()

    @property
    def handover(self) -> _handover.Handover:
        """The object that receives the workers' results. REQUIRES: `serve` was called."""
        assert self._handover is not None
        return self._handover

    def drain(self, host: str) -> None:
        """Makes the agent with that name leave an elastic job, within the job's grace time, so that no step is lost."""
        with contextlib.suppress(OSError):  # the job is over
            self._owner.sendall(f"drain {host}\n".encode())

    def wait(self, timeout: Optional[float] = None) -> Optional[int]:
        """Returns the job's exit code, or None if the job still runs after `timeout` seconds."""
        try:
            return self._process.wait(timeout)
        except TimeoutExpired:
            return None

    def last_line(self) -> str:
        """Returns the daemon's last line: after the end, the verdict."""
        return self._lines[-1].removeprefix(_DAEMON) if self._lines else ""

    def stop(self) -> None:
        """Ends the job, if it still runs, and everything that belongs to it."""
        if os.getpid() == self._pid:
            # Processes that were forked may have the socket, too.
            with contextlib.suppress(OSError):  # the daemon has ended
                self._owner.shutdown(socket.SHUT_RDWR)
        with self._stopping:
            self._owner.close()
            self._process.wait_or_kill(_STOP_SECONDS)
            if self._server is not None:
                self._server.stop()
                self._server = None

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


# Sockets that a forked process must not keep open: workers would wait for its answers.
_LISTENERS: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


def _close_listeners() -> None:
    for listener in list(_LISTENERS):
        listener.close()


os.register_at_fork(after_in_child=_close_listeners)


def _listen_on(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((address, 0))
    listener.listen(128)
    listener.setblocking(False)
    return listener


def _print_to_stderr(line: str) -> None:
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)
