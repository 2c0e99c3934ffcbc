"""The transfer of a function from ``horovod.run`` to its workers on any host, and of the results back, over mutual TLS with a
server in the caller's process.

horovodrun makes a certificate authority for this purpose only (launcher/job/handover.h). The caller gets its certificate and
the sockets to listen on over a unix socket. Each worker reads its certificate and the addresses once, from stdin. So no
secret is in an environment, an argument or a file. Jobs whose agents an engine starts (_job) use the certificates of the
job instead.
"""

import json
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple, Optional, Protocol

import cloudpickle

from horovod.common import _tracebacks
from horovod.common.class_names import with_article
from horovod.runner._addresses import split_host_port
from horovod.runner._python import CallersPython
from horovod.runner._tls_server import LENGTH, Credentials, TlsServer, context_of

SERVER_NAME = "horovod-rendezvous"  # in the server's certificate
_PATIENCE = 60.0  # seconds, for the caller to be reached, and to go on
_CROWDED = 3600.0  # seconds, for a caller that is reached, but hangs up: strangers crowd its port
_CONNECT_SECONDS = 8.0  # of one attempt: three packets
_PAUSE = 0.1  # seconds between two attempts
_HEADER = struct.Struct("!cI")  # kind and rank
_GET, _RESULT, _FAILURE, _OUTPUT = b"g", b"r", b"f", b"o"
_TASK_BEGAN, _TASK_ENDED, _GOES_ON = b"b", b"e", b"?"
_YES = b"yes"


class Failure(NamedTuple):
    """The exception that a worker raised."""

    rank: int
    caused_by_peer: bool  # it is only the consequence of another worker's end
    text: str  # the traceback


def credentials_of(words: dict[str, Any]) -> Credentials:
    """Returns the credentials in a JSON object from horovodrun."""
    return Credentials(*(words[field] for field in Credentials._fields))


class Tasks(Protocol):
    """The interface for reports of an engine's tasks, each of which runs an agent. Called on the server's thread, perhaps twice
    for one event.
    """

    def begin(self, name: str, executor: Optional[str]) -> bool:
        """A task has begun. Returns whether it is too late, because the job is over."""

    def end(self, name: str, exit_code: int) -> bool:
        """A task's agent has ended. Returns whether the engine should start the task again."""

    def job_goes_on(self) -> bool:
        """Returns whether the job is not over."""


class Handover:
    """The caller's side: gives out the function, and receives the results. Thread-safe.

    `on_output(stream, text)` shows what workers have written to their stdout (1) or stderr (2); it is called on the server's
    thread.
    """

    def __init__(
        self,
        call: Callable[[], Any],
        on_output: Optional[Callable[[int, str], None]] = None,
        tasks: Optional[Tasks] = None,
    ) -> None:
        python = json.dumps(CallersPython.here()).encode()
        self._function: bytes = (
            struct.pack("!Q", len(python)) + python + pickled(call, "the function or one of its arguments")
        )
        self._on_output, self._tasks = on_output, tasks
        self._lock = threading.Lock()
        self._results: dict[int, bytes] = {}
        self._failures: dict[int, Failure] = {}

    def server(self, credentials: Credentials, listeners: Iterable[socket.socket]) -> TlsServer:
        """Returns a server for the workers, not started yet."""
        context = context_of(credentials, ssl.PROTOCOL_TLS_SERVER)
        return TlsServer(listeners, context, self.answer)

    def answer(self, request: bytes) -> bytes:
        """Returns the answer to a worker's request."""
        kind, rank = _HEADER.unpack_from(request)
        data = request[_HEADER.size :]
        if kind == _GET:
            return self._function
        if kind == _OUTPUT:
            if self._on_output is not None:
                self._on_output(rank, data.decode(errors="replace"))
            return b""
        if kind in (_TASK_BEGAN, _TASK_ENDED, _GOES_ON):
            return _YES if self._ask_tasks(kind, json.loads(data)) else b""
        with self._lock:
            if kind == _RESULT:
                self._results[rank] = data
            else:
                self._failures[rank] = Failure(**json.loads(data))
        return b""

    def _ask_tasks(self, kind: bytes, words: dict[str, Any]) -> bool:
        if self._tasks is None:
            return False
        if kind == _TASK_BEGAN:
            return self._tasks.begin(words["name"], words["executor"])
        if kind == _TASK_ENDED:
            return self._tasks.end(words["name"], words["exit_code"])
        return self._tasks.job_goes_on()

    def results(self) -> dict[int, Any]:
        """Returns the function's results, by rank. Raises RuntimeError if one can't be unpickled here."""
        with self._lock:
            return {rank: _result(rank, data) for rank, data in sorted(self._results.items())}

    def failures(self) -> list[Failure]:
        """Returns the exceptions that were raised; causes precede consequences."""
        with self._lock:
            found = list(self._failures.values())
        return sorted(found, key=lambda failure: (failure.caused_by_peer, failure.rank))


def pickled(value: object, what: str = "") -> bytes:
    """Returns the pickle of a value. Raises TypeError, with its name `what`, if it can't be pickled; by default it is called the
    function's result.
    """
    try:
        data: bytes = cloudpickle.dumps(value)
        return data
    except Exception as error:
        what = what or f"the function's result, {with_article(value)},"
        raise TypeError(f"{what} can't be pickled: {error}") from error


def _result(rank: int, data: bytes) -> object:
    try:
        return cloudpickle.loads(data)
    except Exception as error:
        text = f"the result of rank {rank} can't be unpickled here: {type(error).__name__}: {error}"
        raise RuntimeError(text) from error


def loaded(data: bytes, folders: Sequence[str] = ()) -> Callable[[], Any]:
    """Unpickles the caller's function. Its modules are searched where the caller finds them, and in `folders`, those of an engine's
    task. Raises RuntimeError if it can't be unpickled here.
    """
    (length,) = struct.unpack_from("!Q", data)
    python = CallersPython(*json.loads(data[8 : 8 + length]))
    python.check()
    python.take_paths(folders)
    try:
        call: Callable[[], Any] = cloudpickle.loads(memoryview(data)[8 + length :])
    except Exception as error:
        text = "the function or its arguments can't be unpickled on this worker: {}: {}"
        raise RuntimeError(text.format(type(error).__name__, error)) from None
    return call


class Worker:
    """A worker's side. Its methods raise OSError if the caller can't be reached, or is not the one that the certificates are for."""

    def __init__(self, credentials: Credentials, address: tuple[str, int]) -> None:
        self.address = address
        self._context = context_of(credentials, ssl.PROTOCOL_TLS_CLIENT)

    @classmethod
    def of(cls, words: dict[str, Any], launcher: str) -> "Worker":
        """Makes a Worker from horovodrun's text for workers; `launcher` is the address under which the agent reached horovodrun.
        Raises KeyError or ValueError for an invalid text.
        """
        addresses = [split_host_port(address) for address in words["addresses"]]
        reached = [one for one in addresses if one[0] == launcher.strip("[]")]
        return cls(credentials_of(words), (reached or addresses)[0])

    def _ask(self, kind: bytes, rank: int, data: bytes = b"") -> bytes:
        request = _HEADER.pack(kind, rank) + data
        began = answered = time.monotonic()
        while True:
            try:
                return self._ask_once(request)
            except ConnectionRefusedError:  # the caller listened before its address was known, so it has ended
                raise
            except (ConnectionError, socket.timeout, TimeoutError, ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
                # The caller may be overloaded. A repeated request is harmless. Before Python 3.10 the kernel's timeout and that of
                # sockets are two classes.
                now = time.monotonic()
                if not isinstance(error, (socket.timeout, TimeoutError)):
                    answered = now  # it lives, and has too many connections
                if now - answered >= _PATIENCE or now - began >= _CROWDED:
                    raise
            time.sleep(_PAUSE)

    def _ask_once(self, request: bytes) -> bytes:
        with (
            self._connect() as plain,
            self._context.wrap_socket(plain, server_hostname=SERVER_NAME) as stream,
        ):
            for part in (LENGTH.pack(len(request)), request):
                view = memoryview(part)
                for start in range(0, len(view), 1 << 20):
                    stream.sendall(view[start : start + (1 << 20)])
            (length,) = LENGTH.unpack(_read(stream, LENGTH.size))
            return _read(stream, length)

    def _connect(self) -> socket.socket:
        # A queue that was full has dropped the connection's first packet, and the kernel repeats it ever more rarely. A new
        # connection comes sooner.
        connection = socket.create_connection(self.address, timeout=_CONNECT_SECONDS)
        connection.settimeout(_PATIENCE)
        return connection

    def get_function(self) -> bytes:
        """Returns the pickled function, for :func:`loaded`."""
        return self._ask(_GET, 0)

    def put_result(self, rank: int, result: bytes) -> None:
        """Sends the function's :func:`pickled` result on rank `rank`."""
        self._ask(_RESULT, rank, result)

    def put_output(self, stream: int, text: str) -> None:
        """Sends what a worker has written to its stdout (1) or stderr (2)."""
        self._ask(_OUTPUT, stream, text.encode(errors="replace"))

    def begin_task(self, name: str, executor: Optional[str]) -> bool:
        """See :class:`Tasks`."""
        return self._ask_about_tasks(_TASK_BEGAN, {"name": name, "executor": executor})

    def end_task(self, name: str, exit_code: int) -> bool:
        """See :class:`Tasks`."""
        return self._ask_about_tasks(_TASK_ENDED, {"name": name, "exit_code": exit_code})

    def job_goes_on(self) -> bool:
        """Returns whether the job is not over, as far as the caller knows."""
        return self._ask_about_tasks(_GOES_ON, {})

    def _ask_about_tasks(self, kind: bytes, words: dict[str, object]) -> bool:
        return self._ask(kind, 0, json.dumps(words).encode()) == _YES

    def put_failure(self, rank: int, error: BaseException, caused_by_peer: bool) -> None:
        """Sends the exception that the function raised on rank `rank`."""
        failure = Failure(rank, bool(caused_by_peer), _tracebacks.folded(error))
        self._ask(_FAILURE, rank, json.dumps(failure._asdict()).encode())


def _read(stream: ssl.SSLSocket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = stream.recv(min(count - len(data), 1 << 20))
        if not part:
            raise ConnectionError("the caller of horovod.run hung up")
        data += part
    return bytes(data)


def receive_credentials(
    launcher: socket.socket,
) -> tuple[dict[str, Any], list[socket.socket]]:
    """Returns horovodrun's text for its caller, and the sockets to listen on. Raises ConnectionError if there is none."""
    text, listeners = b"", []
    while True:
        part, descriptors = _receive_descriptors(launcher)
        listeners += [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if not part:
            break
        text += part
    if not text:
        raise ConnectionError("horovodrun has ended")
    return json.loads(text), listeners


def _receive_descriptors(launcher: socket.socket) -> tuple[bytes, list[int]]:
    size = struct.calcsize("i")
    data, ancillary, _, _ = launcher.recvmsg(1 << 16, socket.CMSG_SPACE(253 * size), socket.MSG_CMSG_CLOEXEC)
    descriptors: list[int] = []
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            count = len(content) // size
            descriptors += struct.unpack(f"{count}i", content[: count * size])
    return data, descriptors


def take_words() -> dict[str, Any]:
    """Returns horovodrun's text for this worker, from stdin, which is empty afterwards. Raises ValueError if there is none."""
    text = b""
    while True:
        part = os.read(0, 1 << 16)
        if not part:
            break
        text += part
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    words: dict[str, Any] = json.loads(text)
    return words
