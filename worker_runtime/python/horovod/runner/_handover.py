"""How a function gets from ``horovod.run`` to its workers on any host, and what becomes of it gets
back: over TCP, to a server in the caller's process.

Who connects must prove that it knows the run's key, and so must the server; only then is anything
unpickled. Each side signs what it sends (HMAC-SHA256) together with a number that the server draws
for the connection, so nothing can be forged or played again. It is not encrypted.
"""

import hashlib
import hmac
import json
import secrets
import socket
import socketserver
import struct
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import cloudpickle

KEY_VARIABLE = "HOROVOD_RUN_KEY"  # of the workers' environment

_NONCE_BYTES = 32
_MAC_BYTES = 32
_PATIENCE = 60.0  # seconds, for the other side to go on
_HEADER = struct.Struct("!cIQ")  # kind, rank, length of what follows
_GET, _RESULT, _FAILURE, _ANSWER = b"g", b"r", b"f", b"a"


class Failure(NamedTuple):
    """What a worker raised."""

    rank: int
    caused_by_peer: bool  # it only says that another worker is gone
    text: str  # the traceback


class _Channel:
    """Messages of one connection. Raises OSError when it ends, PermissionError for a bad
    signature."""

    def __init__(self, connection: socket.socket, key: bytes, nonce: bytes) -> None:
        self._connection, self._key, self._nonce = connection, key, nonce

    def send(self, kind: bytes, rank: int, data: bytes) -> None:
        header = _HEADER.pack(kind, rank, len(data))
        # The header first: nobody makes room for more than what a friend has announced.
        self._connection.sendall(header + self._sign(header) + data + self._sign(header + data))

    def receive(self) -> Tuple[bytes, int, bytes]:
        header = self._read(_HEADER.size)
        self._check(header)
        kind, rank, length = _HEADER.unpack(header)
        data = self._read(length)
        self._check(header + data)
        return kind, rank, data

    def _sign(self, data: bytes) -> bytes:
        return hmac.new(self._key, self._nonce + data, hashlib.sha256).digest()

    def _check(self, data: bytes) -> None:
        if not hmac.compare_digest(self._read(_MAC_BYTES), self._sign(data)):
            raise PermissionError("the other side of horovod.run does not know its key")

    def _read(self, count: int) -> bytes:
        return read_exactly(self._connection, count)


def read_exactly(connection: socket.socket, count: int) -> bytes:
    """Raises ConnectionError if fewer bytes come."""
    parts = []
    while count > 0:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the other side of horovod.run is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, everywhere: bool) -> None:
        family = socket.AF_INET6 if everywhere and socket.has_dualstack_ipv6() else socket.AF_INET
        self.address_family = family
        super().__init__(("" if everywhere else "127.0.0.1", 0), _Handler, False)
        if family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.server_bind()
        self.server_activate()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a stranger, or a worker that died: the job's end tells


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.settimeout(_PATIENCE)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        self.request.sendall(nonce)
        channel = _Channel(self.request, self.server.handover.key, nonce)
        channel.send(_ANSWER, 0, self.server.handover.answer(*channel.receive()))


class Handover:
    """The caller's side: gives the function out, and takes what comes back. Thread-safe.

    A context manager; the server runs meanwhile. `everywhere`: workers on other hosts may connect,
    too.
    """

    def __init__(self, call: Callable[[], Any], everywhere: bool) -> None:
        paths = json.dumps([path for path in sys.path if path]).encode()
        self._function = struct.pack("!Q", len(paths)) + paths + cloudpickle.dumps(call)
        self._lock = threading.Lock()
        self._results: Dict[int, bytes] = {}
        self._failures: Dict[int, Failure] = {}
        self._server = _Server(everywhere)
        self._server.handover = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self.key = secrets.token_bytes(32)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> "Handover":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, kind: bytes, rank: int, data: bytes) -> bytes:
        """What a worker is told that has sent this."""
        if kind == _GET:
            return self._function
        with self._lock:
            if kind == _RESULT:
                self._results[rank] = data
            else:
                self._failures[rank] = Failure(**json.loads(data))
        return b""

    def results(self) -> Dict[int, Any]:
        """What the function returned, by rank."""
        with self._lock:
            return {rank: cloudpickle.loads(data) for rank, data in self._results.items()}

    def failures(self) -> List[Failure]:
        """What was raised; causes before consequences."""
        with self._lock:
            found = list(self._failures.values())
        return sorted(found, key=lambda failure: (failure.caused_by_peer, failure.rank))


def pickled(value: Any) -> bytes:
    """What the function returned, as it travels. Raises TypeError, naming the type, if it can't."""
    try:
        return cloudpickle.dumps(value)
    except Exception as error:
        text = "the function's result, a {}, can't be pickled: {}"
        raise TypeError(text.format(type(value).__name__, error)) from error


class Worker:
    """A worker's side. Its methods raise OSError if the caller can't be reached."""

    def __init__(self, host: str, port: int, key: bytes) -> None:
        self._address, self._key = (host, port), key

    def _ask(self, kind: bytes, rank: int, data: bytes) -> bytes:
        with socket.create_connection(self._address, timeout=_PATIENCE) as connection:
            channel = _Channel(connection, self._key, read_exactly(connection, _NONCE_BYTES))
            channel.send(kind, rank, data)
            return channel.receive()[2]

    def get_function(self) -> Callable[[], Any]:
        """The function; modules are found where the caller finds them, if they are there."""
        data = self._ask(_GET, 0, b"")
        (length,) = struct.unpack_from("!Q", data)
        paths, function = data[8 : 8 + length], data[8 + length :]
        sys.path.extend(path for path in json.loads(paths) if path not in sys.path)
        return cloudpickle.loads(function)

    def put_result(self, rank: int, result: bytes) -> None:
        """What the function returned on rank `rank`, :func:`pickled`."""
        self._ask(_RESULT, rank, result)

    def put_failure(self, rank: int, error: BaseException, caused_by_peer: bool) -> None:
        """What the function raised on rank `rank`."""
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        failure = Failure(rank, bool(caused_by_peer), text)
        self._ask(_FAILURE, rank, json.dumps(failure._asdict()).encode())
