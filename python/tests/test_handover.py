"""How functions and results travel between horovod.run and its workers. Needs horovodrun, which
makes the certificates; runs in one process."""

import contextlib
import itertools
import json
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import types

import pytest

from horovod.runner import _handover, _tls_server
from horovod.runner.launch import find_program
from launcher_there import needs_launcher

pytestmark = needs_launcher
HANG_UP = contextlib.suppress(ConnectionError)  # the other side may do so at any time


def end_of_writing(connection):
    with contextlib.suppress(OSError):  # ENOTCONN: the other side has reset the connection
        connection.shutdown(socket.SHUT_WR)


class Meeting:
    """What horovodrun gives out for one run: the caller's side and the workers'."""

    def __init__(self):
        own, launchers = socket.socketpair()
        with own, launchers:
            flags = ["--handover", str(launchers.fileno()), "-np", "1"]
            job = subprocess.Popen(
                [find_program("horovodrun"), *flags, "cat"],
                stdout=subprocess.PIPE,
                pass_fds=[launchers.fileno()],
            )
            launchers.close()
            self.caller, self.listeners = _handover.receive_credentials(own)
        output, _ = job.communicate(timeout=60)
        assert job.returncode == 0
        self.workers = json.loads(output.partition(b"<stdout>:")[2])

    def worker(self, address=None):
        worker = _handover.Worker.of(self.workers, "127.0.0.1")
        worker.address = address or worker.address
        return worker


class Serving:
    """A caller that gives out a function that returns 5."""

    def __init__(self, meeting, credentials=None):
        self.handover = _handover.Handover(lambda: 5)
        credentials = _handover.credentials_of(credentials or meeting.caller)
        self.server = self.handover.server(credentials, meeting.listeners)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()


@pytest.fixture(scope="module")
def other_meeting():
    meeting = Meeting()
    yield meeting
    for listener in meeting.listeners:
        listener.close()


@pytest.fixture
def meeting():
    return Meeting()


@pytest.fixture
def serving(meeting):
    with Serving(meeting) as serving:
        yield serving


def test_the_function_goes_out_and_results_come_back(meeting, serving):
    worker = meeting.worker()
    assert _handover.loaded(worker.get_function())() == 5
    large = bytes(3 << 20)
    worker.put_result(1, _handover.pickled({"of": large}))
    worker.put_result(0, _handover.pickled(None))
    assert serving.handover.results() == {0: None, 1: {"of": large}}


def test_causes_come_before_consequences(meeting, serving):
    meeting.worker().put_failure(0, RuntimeError("peer is gone"), True)
    meeting.worker().put_failure(1, ValueError("cause"), False)
    assert [failure.rank for failure in serving.handover.failures()] == [1, 0]


def test_who_is_of_another_run_gets_nothing_and_leaves_nothing(meeting, serving, other_meeting):
    stranger = other_meeting.worker(meeting.worker().address)
    with pytest.raises(OSError):
        stranger.get_function()
    with pytest.raises(OSError):
        stranger.put_result(0, _handover.pickled("bad"))
    assert serving.handover.results() == {}


@pytest.mark.parametrize("certified", [False, True])
def test_who_does_not_care_about_the_server_gets_nothing_either(meeting, serving, other_meeting, certified):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if certified:  # by the authority of another run
        credentials = _handover.credentials_of(other_meeting.workers)
        context = _tls_server.context_of(credentials, ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    stranger = meeting.worker()
    stranger._context = context
    with pytest.raises(OSError):
        stranger._ask_once(_handover._HEADER.pack(b"g", 0))
    with pytest.raises(OSError):
        stranger._ask_once(_handover._HEADER.pack(b"r", 0) + _handover.pickled("bad"))
    assert serving.handover.results() == {}


def test_a_worker_can_not_pass_for_the_caller(meeting):
    """A server with a worker's credentials is rejected by other workers."""
    with Serving(meeting, meeting.workers), pytest.raises(OSError):
        meeting.worker().get_function()


def test_echoing_server_can_not_pass_for_the_caller(meeting):
    """A server without credentials echoes what it receives."""
    (listener,) = meeting.listeners
    listener.setblocking(True)

    def reflect():
        with listener, listener.accept()[0] as connection, HANG_UP:
            while True:
                got = connection.recv(1 << 16)
                if not got:
                    return
                connection.sendall(got)

    reflecting = threading.Thread(target=reflect)
    reflecting.start()
    with pytest.raises(OSError):
        meeting.worker().put_result(0, _handover.pickled("precious"))
    reflecting.join()


def test_what_was_recorded_can_not_be_played_again(meeting, serving):
    address = meeting.worker().address
    recorded = []
    with socket.create_server(("127.0.0.1", 0)) as between:

        def pass_on(source, target, record):
            while True:
                got = source.recv(1 << 16)
                record.append(got)
                if not got:
                    break
                target.sendall(got)
            end_of_writing(target)

        def relay():
            with between.accept()[0] as worker, socket.create_connection(address) as caller:
                back = threading.Thread(target=pass_on, args=(caller, worker, []))
                back.start()
                pass_on(worker, caller, recorded)
                back.join()

        relaying = threading.Thread(target=relay)
        relaying.start()
        meeting.worker(between.getsockname()).put_result(0, _handover.pickled("once"))
        relaying.join()
    assert serving.handover.results() == {0: "once"}
    serving.handover._results.clear()
    with socket.create_connection(address, timeout=60) as connection, HANG_UP:
        connection.sendall(b"".join(recorded))
        end_of_writing(connection)
        while connection.recv(1 << 16):
            pass
    assert serving.handover.results() == {}


@pytest.mark.parametrize("words", [b"", b"\x16"], ids=["silent", "begun"])
def test_strangers_take_neither_threads_nor_the_workers_places(meeting, serving, monkeypatch, words):
    monkeypatch.setattr(_tls_server, "_HANDSHAKE_SECONDS", 3600.0)
    most = _tls_server._MOST_STRANGERS
    address = meeting.worker().address
    threads = threading.active_count()
    strangers = []
    try:
        for _ in range(most + 50):
            strangers.append(socket.create_connection(address, timeout=60))
            strangers[-1].sendall(words)
        assert _handover.loaded(meeting.worker().get_function())() == 5
        assert len(serving.server._strangers(bool(words))) <= most
        assert threading.active_count() == threads
    finally:
        for stranger in strangers:
            stranger.close()


@pytest.mark.parametrize("words", [b"", b"\x16"], ids=["silent", "begun"])
def test_strangers_from_elsewhere_do_not_displace_a_slow_worker(meeting, serving, monkeypatch, words):
    monkeypatch.setattr(_tls_server, "_HANDSHAKE_SECONDS", 3600.0)
    worker = meeting.worker()
    with (
        contextlib.ExitStack() as strangers,
        socket.create_connection(worker.address, timeout=60, source_address=("127.0.0.1", 0)) as plain,
    ):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        handshake = worker._context.wrap_bio(incoming, outgoing, server_hostname=_handover.SERVER_NAME)
        with contextlib.suppress(ssl.SSLWantReadError):
            handshake.do_handshake()
        hello = outgoing.read()
        if words:
            plain.sendall(hello)
        crowd = [
            strangers.enter_context(
                socket.create_connection(worker.address, timeout=60, source_address=("127.0.0.2", 0))
            )
            for _ in range(_tls_server._MOST_STRANGERS)
        ]
        for stranger in crowd:
            stranger.sendall(words)
        one_more = strangers.enter_context(
            socket.create_connection(worker.address, timeout=60, source_address=("127.0.0.2", 0))
        )
        one_more.sendall(words)
        assert select.select(crowd, [], [], 60)[0], "one was hung up on"
        if not words:
            plain.sendall(hello)
        assert plain.recv(1) == b"\x16"  # the server's part of the handshake
        assert any(one.source == socket.inet_aton("127.0.0.1") for one in serving.server._connections)


def test_crowd_of_handshakes_delays_neither_the_queue_nor_a_worker(meeting):
    """Its handshakes would take the server all of its time, while the worker waits in the kernel's queue."""
    serving = Serving(meeting)
    worker = meeting.worker()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = worker._context.wrap_bio(incoming, outgoing, server_hostname=_handover.SERVER_NAME)
    with contextlib.suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    hello = outgoing.read()
    with contextlib.ExitStack() as clients:
        for source in ["127.0.0.2"] * 100 + ["127.0.0.1"]:
            client = clients.enter_context(
                socket.create_connection(worker.address, timeout=60, source_address=(source, 0))
            )
            client.sendall(hello)
        serving.server._accept_all(meeting.listeners[0])
        waiting = serving.server._connections
        assert len(waiting) == 101
        serving.server._step_all(list(waiting))
        assert client.recv(1) == b"\x16"  # the worker's turn came in the first round
        assert sum(one.has_spoken for one in waiting) == _tls_server._STEPS_OF_STRANGERS
        serving.server.start()
        serving.server.stop()


def test_addresses_of_one_peer_are_one_source():
    for same in (
        ["127.0.0.2", "127.99.3.1", "::ffff:127.0.0.3"],
        ["127.0.0.1", "::ffff:127.0.0.1"],
        ["fd00::1", "fd00::2%lo"],
    ):
        assert len(set(map(_tls_server._source, same))) == 1, same
    others = ["127.0.0.1", "127.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1", "fd01::1"]
    assert len(set(map(_tls_server._source, others))) == len(others)


def of_sources(*sources):
    return [types.SimpleNamespace(source=source, since=since) for since, source in enumerate(sources)]


def test_addresses_take_turns_and_of_each_the_newest_comes_first(monkeypatch):
    waiting = of_sources(*"aaaaaaaab")
    chosen = _tls_server._in_turns(waiting)
    assert {one.since for one in chosen[:2]} == {7, 8}
    assert [one.since for one in chosen[2:]] == [6, 5, 4, 3, 2, 1]
    assert len(_tls_server._in_turns(of_sources(*range(20)))) == _tls_server._STEPS_OF_STRANGERS
    assert _tls_server._in_turns([]) == []


def test_chance_decides_which_of_an_address_goes():
    strangers = of_sources(*"baaa")
    gone = {_tls_server._first_to_go(strangers).since for _ in range(1000)}
    assert gone == {1, 2, 3}
    assert _tls_server._first_to_go([]) is None


def test_worker_retries_while_the_caller_closes_connections(meeting, monkeypatch):
    """The caller closes connections while strangers crowd its port."""
    now = itertools.count(0, 50)
    clock = types.SimpleNamespace(monotonic=lambda: next(now), sleep=lambda seconds: None)
    monkeypatch.setattr(_handover, "time", clock)
    crowded = socket.create_server(("127.0.0.1", 0))
    worker = meeting.worker(crowded.getsockname())

    def hang_up():
        with crowded:
            for _ in range(5):
                crowded.accept()[0].close()

    hanging_up = threading.Thread(target=hang_up)
    hanging_up.start()
    with pytest.raises(ConnectionRefusedError):  # now it has ended
        worker.put_result(0, _handover.pickled("precious"))
    hanging_up.join()


def test_worker_retries_after_a_kernel_timeout(meeting, monkeypatch):
    monkeypatch.setattr(socket, "timeout", type("Timeout", (OSError,), {}))  # as before Python 3.10
    failures = iter([TimeoutError("Connection timed out"), socket.timeout("timed out")])

    def ask_once(_, request):
        for failure in failures:
            raise failure
        return b"answer"

    monkeypatch.setattr(_handover.Worker, "_ask_once", ask_once)
    monkeypatch.setattr(_handover, "_PAUSE", 0)
    assert meeting.worker().get_function() == b"answer"


def test_an_answer_that_exits_ends_only_its_connection(meeting, serving):
    serving.handover._on_output = lambda stream, text: sys.exit(1)
    with pytest.raises((ConnectionError, ssl.SSLError)):
        meeting.worker()._ask_once(_handover._HEADER.pack(b"o", 1) + b"text")
    assert _handover.loaded(meeting.worker().get_function())() == 5


def test_a_stranger_that_has_reset_its_connection_ends_nothing(meeting):
    resetting = struct.pack("ii", 1, 0)
    for _ in range(2):  # they wait for the server
        with socket.create_connection(meeting.worker().address) as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, resetting)
    with Serving(meeting):
        assert _handover.loaded(meeting.worker().get_function())() == 5


def test_time_limits_are_for_a_whole_request(meeting, serving, monkeypatch):
    """A stranger that sends a byte now and then does not stay longer for it."""
    now = [0.0]
    clock = types.SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(_tls_server, "time", clock)
    hello = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"  # the beginning of a long one
    with socket.create_connection(meeting.worker().address, timeout=60) as stranger:
        stranger.sendall(hello)
        while not any(one.has_spoken for one in serving.server._connections):
            pass
        for now[0] in (9.9, 10.1):
            stranger.sendall(b"\0")
        assert stranger.recv(1) == b""


def test_impossible_length_does_not_end_the_server(meeting, serving):
    """Its deadline, far in the future, does not end the server either."""
    worker = meeting.worker()
    with (
        socket.create_connection(worker.address, timeout=60) as plain,
        worker._context.wrap_socket(plain, server_hostname=_handover.SERVER_NAME) as stream,
    ):
        stream.sendall(_tls_server.LENGTH.pack((1 << 64) - 1))
        while not any(one.deadline > 1e12 for one in serving.server._connections):
            pass
        assert _handover.loaded(meeting.worker().get_function())() == 5


def test_workers_of_this_host_are_awaited_on_loopback_only(meeting, serving):
    assert [one.getsockname()[0] for one in meeting.listeners] == ["127.0.0.1"]
