"""A single-threaded server of short requests over mutual TLS; unauthenticated clients can't block it."""

import collections
import functools
import ipaddress
import os
import random
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Generator, Iterable
from typing import Any, Callable, NamedTuple, Optional

LENGTH = struct.Struct("!Q")  # before a request, and before its answer

_MOST_FRIENDS = 256
_MOST_STRANGERS = 128  # silent ones, and as many others
_STEPS_OF_STRANGERS = 8  # in one round, of each of the two kinds; a step of a handshake takes about a millisecond
_MOST_ACCEPTED = 256  # in one round, so that a crowd does not keep the server from the rest of it
_HANDSHAKE_SECONDS = 10.0
_REQUEST_SECONDS = 60.0  # for a whole request, or an answer, and a second for each
_SLOWEST = 1 << 20  # bytes a second
_PIECE = 1 << 20
_PAUSE = 0.1  # seconds, when the process has no descriptor left
_LONGEST_WAIT = 3600.0  # seconds, the longest wait of one system call; a false length would allow any time

_Steps = Generator[int, None, Any]  # yields the events that it waits for


class Credentials(NamedTuple):
    """The certificate of the trusted authority, and one's own certificate and key, as PEM texts."""

    ca: str
    certificate: str
    key: str


def context_of(credentials: Credentials, protocol: int) -> ssl.SSLContext:
    """Returns a context of that protocol, client's or server's, in which both sides need a certificate."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=credentials.ca)
    # A certificate can only be loaded from a file with a name; this file is in no directory.
    own = os.memfd_create("horovod")
    try:
        with open(own, "w", closefd=False) as file:
            file.write(credentials.certificate + credentials.key)
        context.load_cert_chain(f"/proc/self/fd/{own}")
    finally:
        os.close(own)
    return context


class _Connection:
    """A connection and its progress."""

    def __init__(self, plain: socket.socket, source: bytes, serve: Callable[["_Connection"], _Steps]) -> None:
        self.stream, self.source = plain, source  # with TLS from the first step on
        self.descriptor = plain.fileno()
        self.since = time.monotonic()
        self.deadline = self.since + _HANDSHAKE_SECONDS
        self.has_spoken = False
        self.spoken_since = 0.0
        self.is_friend = False  # it has proven that it has a certificate
        self.events = selectors.EVENT_READ
        self.steps = serve(self)


@functools.lru_cache(maxsize=1024)
def _source(host: str) -> bytes:
    """Returns a value that is equal for connections which one peer can make as many of as it likes: its IPv4 address, or the network
    of its IPv6 address, 64 bits. All of 127.0.0.0/8 but 127.0.0.1, from which every user of the machine may connect, are one.
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return address.packed[:8]
        address = address.ipv4_mapped
    usual = ipaddress.IPv4Address("127.0.0.1")
    return bytes([127, 0, 0, 0]) if address.is_loopback and address != usual else address.packed


def _first_to_go(strangers: list[_Connection]) -> Optional[_Connection]:
    """Returns a connection of the address that has the most of these: a crowd from one address costs others nothing. Which one is
    left to chance: of two that began together, a crowd would drive out the older one first, always before it is ready.
    """
    by_source = _by_source(strangers)
    return random.choice(max(by_source.values(), key=len)) if by_source else None


def _by_source(connections: Iterable[_Connection]) -> dict[bytes, list[_Connection]]:
    found: dict[bytes, list[_Connection]] = collections.defaultdict(list)
    for connection in connections:
        found[connection.source].append(connection)
    return found


def _in_turns(waiting: Iterable[_Connection]) -> list[_Connection]:
    """Returns the connections whose turn it is in this round: their addresses in turns, and of each address the newest first, whose
    peers have probably not given up yet.
    """
    queues = [sorted(queue, key=lambda one: one.since) for queue in _by_source(waiting).values()]
    random.shuffle(queues)
    chosen: list[_Connection] = []
    while queues and len(chosen) < _STEPS_OF_STRANGERS:
        chosen += [queue.pop() for queue in queues[: _STEPS_OF_STRANGERS - len(chosen)]]
        queues = [queue for queue in queues if queue]
    return chosen


def _when_ready(action: Callable[[], object]) -> _Steps:
    while True:
        try:
            return action()
        except ssl.SSLWantReadError:
            yield selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            yield selectors.EVENT_WRITE


def _receive(stream: ssl.SSLSocket, count: int) -> _Steps:
    data = bytearray()
    while len(data) < count:
        wanted = min(count - len(data), _PIECE)
        part = yield from _when_ready(lambda: stream.recv(wanted))  # noqa: B023 - called at once
        if not part:
            raise ConnectionError("it ended in the middle")
        data += part
    return bytes(data)


def _send(stream: ssl.SSLSocket, data: bytes) -> _Steps:
    rest = memoryview(data)
    while rest:
        piece = rest[:_PIECE]
        sent = yield from _when_ready(lambda: stream.send(piece))  # noqa: B023 - called at once
        rest = rest[sent:]


class TlsServer:
    """Answers the requests of clients with a certificate, one per connection, on a separate thread, from `start` to `stop`.

    `answer(request)` is called on that thread; its exceptions end that connection. All time limits are for the whole of a
    handshake or request. There are at most 256 authenticated connections; further ones wait in the kernel's queue. Of those that
    are not, at most 128 have sent nothing, and 128 have sent something: see `_first_to_go` and `_in_turns`.
    """

    def __init__(
        self,
        listeners: Iterable[socket.socket],
        context: ssl.SSLContext,
        answer: Callable[[bytes], bytes],
    ) -> None:
        self._listeners, self._context, self._answer = list(listeners), context, answer
        self._connections: list[_Connection] = []
        self._accepts_from = 0.0
        self._selector = selectors.DefaultSelector()
        self._stopped, self._stop = socket.socketpair()
        self._selector.register(self._stopped, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="horovod.run", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Closes everything, listeners included."""
        self._stop.close()
        self._thread.join()
        self._stopped.close()

    def _run(self) -> None:
        while True:
            self._choose_listeners()
            ready = [(key.fileobj, key.data) for key, _ in self._selector.select(self._patience())]
            if any(one is self._stopped for one, _ in ready):
                break
            for listener, connection in ready:
                if connection is None and isinstance(listener, socket.socket):
                    self._accept_all(listener)
            self._step_all([connection for _, connection in ready if connection is not None])
            self._drop_late()
        for connection in list(self._connections):
            self._drop(connection)
        for listener in self._listeners:
            listener.close()
        self._selector.close()

    def _patience(self) -> Optional[float]:
        times = [connection.deadline for connection in self._connections]
        if self._accepts_from:
            times.append(self._accepts_from)
        return min(max(0.0, min(times) - time.monotonic()), _LONGEST_WAIT) if times else None

    def _choose_listeners(self) -> None:
        """Watches the listeners only while there is room for a connection."""
        if self._accepts_from and time.monotonic() >= self._accepts_from:
            self._accepts_from = 0.0
        friends = sum(one.is_friend for one in self._connections)
        wanted = not self._accepts_from and friends < _MOST_FRIENDS
        for listener in self._listeners:
            if wanted != (listener in self._selector.get_map()):
                if wanted:
                    self._selector.register(listener, selectors.EVENT_READ)
                else:
                    self._selector.unregister(listener)

    def _strangers(self, have_spoken: bool) -> list[_Connection]:
        return [one for one in self._connections if not one.is_friend and one.has_spoken == have_spoken]

    def _keep_to_the_bound(self) -> None:
        for have_spoken in (False, True):
            strangers = self._strangers(have_spoken)
            while len(strangers) > _MOST_STRANGERS and (gone := _first_to_go(strangers)) is not None:
                strangers.remove(gone)
                self._drop(gone)

    def _make_room(self) -> bool:
        """Closes an unauthenticated connection, a silent one first. Returns whether there was one."""
        gone = _first_to_go(self._strangers(False)) or _first_to_go(self._strangers(True))
        if gone is not None:
            self._drop(gone)
        return gone is not None

    def _accept_all(self, listener: socket.socket) -> None:
        """Empties the kernel's queue, in which members wait behind a crowd."""
        for _ in range(_MOST_ACCEPTED):
            if not self._accept(listener):
                break
        self._keep_to_the_bound()

    def _accept(self, listener: socket.socket) -> bool:
        """Returns whether there may be another one."""
        try:
            plain, address = listener.accept()
        except BlockingIOError:
            return False
        except ConnectionError:  # the client has reset it
            return True
        except OSError:  # no descriptor is left
            if not self._make_room():
                self._accepts_from = time.monotonic() + _PAUSE
            return False
        plain.setblocking(False)
        connection = _Connection(plain, _source(address[0]), self._serve)
        self._connections.append(connection)
        self._selector.register(connection.descriptor, connection.events, connection)
        return True

    def _step_all(self, ready: list[_Connection]) -> None:
        """Friends go on first. Of strangers' handshakes each round takes a few steps, so that a crowd holds up nobody else."""
        for connection in ready:
            if connection.is_friend:
                self._step(connection)
        for has_spoken in (True, False):
            waiting = [one for one in ready if not one.is_friend and one.has_spoken == has_spoken]
            for connection in _in_turns(waiting):
                self._step(connection)

    def _serve(self, connection: _Connection) -> _Steps:
        stream = self._context.wrap_socket(connection.stream, server_side=True, do_handshake_on_connect=False)
        connection.stream = stream
        yield from _when_ready(stream.do_handshake)
        connection.is_friend = True
        self._allow(connection, 0)
        (length,) = LENGTH.unpack((yield from _receive(stream, LENGTH.size)))
        self._allow(connection, length)
        answer = self._answer((yield from _receive(stream, length)))
        self._allow(connection, len(answer))
        yield from _send(stream, LENGTH.pack(len(answer)))
        yield from _send(stream, answer)

    @staticmethod
    def _allow(connection: _Connection, length: int) -> None:
        connection.deadline = time.monotonic() + _REQUEST_SECONDS + length / _SLOWEST

    def _step(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return  # dropped a moment ago
        try:
            events = next(connection.steps)
        except BaseException:  # also SystemExit: the server must go on
            return self._drop(connection)
        if not connection.has_spoken:
            connection.has_spoken, connection.spoken_since = True, time.monotonic()
            self._keep_to_the_bound()
        if events != connection.events:
            connection.events = events
            self._selector.modify(connection.descriptor, events, connection)

    def _drop(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        self._selector.unregister(connection.descriptor)
        connection.steps.close()
        connection.stream.close()

    def _drop_late(self) -> None:
        now = time.monotonic()
        for connection in [one for one in self._connections if one.deadline <= now]:
            self._drop(connection)
