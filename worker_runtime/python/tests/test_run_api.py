"""horovod.run: functions on several ranks, from Python. Needs horovodrun; runs in one process."""

import os
import socket
import tempfile

import pytest

import horovod
from horovod.runner import _as_arguments, _handover
from horovod.runner.launch import find_program


def has_launcher():
    try:
        return bool(find_program("horovodrun"))
    except FileNotFoundError:
        return False


needs_launcher = pytest.mark.skipif(not has_launcher(), reason="there is no horovodrun")


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    """Nothing may be left behind in it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert os.listdir(str(tmp_path)) == []


@needs_launcher
def test_results_are_in_rank_order():
    offset = 100

    def function(factor, plus=0):
        import torch

        import horovod.torch as hvd

        hvd.init()
        total = hvd.allreduce(torch.tensor([hvd.rank()]), op=hvd.Sum).item()
        return hvd.rank() * factor + plus + offset, total

    assert horovod.run(function, (10,), {"plus": 1}, num_proc=2) == [(101, 1), (111, 1)]


@needs_launcher
def test_function_may_shut_down():
    def function():
        import horovod.torch as hvd

        hvd.init()
        rank = hvd.rank()
        hvd.shutdown()
        return rank

    assert horovod.run(function, num_proc=2, hosts="localhost:2") == [0, 1]


@needs_launcher
def test_exception_reaches_the_caller():
    def function():
        import torch

        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("the cause")
        hvd.allreduce(torch.ones(1))

    with pytest.raises(RuntimeError) as caught:
        horovod.run(function, num_proc=2)
    text = str(caught.value)
    assert "Horovod detected that one or more processes exited with non-zero status" in text
    assert "Rank 1 raised" in text and "KeyError: 'the cause'" in text


@needs_launcher
def test_result_that_can_not_be_pickled_reaches_the_caller():
    with pytest.raises(RuntimeError) as caught:
        horovod.run(lambda: (i for i in range(2)), num_proc=1)
    assert "the function's result, a generator, can't be pickled" in str(caught.value)


@needs_launcher
def test_nothing_is_printed_beside_what_the_function_prints(capfd):
    horovod.run(print, ("words",), num_proc=1)
    assert capfd.readouterr() == ("[0]<stdout>:words\n", "")


def test_contradictions_fail():
    for kwargs in (
        dict(hosts="a:1", hostfile="b"),
        dict(use_mpi=True, use_gloo=True),
        dict(use_mpi=True),
        dict(num_proc=2, np=2),
    ):
        with pytest.raises(ValueError):
            horovod.run(print, **kwargs)


def test_flags():
    flags = {"-np": 2, "-H": None, "--blacklist-cooldown-range": (1, 2)}
    assert _as_arguments(flags) == ["-np", "2", "--blacklist-cooldown-range", "1", "2"]


@pytest.fixture
def handover():
    with _handover.Handover(lambda: 5, everywhere=False) as served:
        yield served


def worker_of(handover, key=None):
    return _handover.Worker("127.0.0.1", handover.port, key or handover.key)


def test_the_function_goes_out_and_results_come_back(handover):
    worker = worker_of(handover)
    assert worker.get_function()() == 5
    worker.put_result(1, _handover.pickled({"of": "one"}))
    worker.put_result(0, _handover.pickled(None))
    assert handover.results() == {0: None, 1: {"of": "one"}}


def test_causes_come_before_consequences(handover):
    worker = worker_of(handover)
    worker.put_failure(0, RuntimeError("peer is gone"), True)
    worker.put_failure(1, ValueError("cause"), False)
    assert [failure.rank for failure in handover.failures()] == [1, 0]


def test_who_does_not_know_the_key_gets_nothing_and_leaves_nothing(handover):
    stranger = worker_of(handover, b"x" * 32)
    with pytest.raises(OSError):
        stranger.get_function()
    with pytest.raises(OSError):
        stranger.put_result(0, _handover.pickled("bad"))
    assert handover.results() == {}


def test_what_was_recorded_can_not_be_played_again(handover):
    sent = []

    def record(channel, kind, rank, data):
        header = _handover._HEADER.pack(kind, rank, len(data))
        sent.append(header + channel._sign(header) + data + channel._sign(header + data))
        return original(channel, kind, rank, data)

    original = _handover._Channel.send
    _handover._Channel.send = record
    try:
        worker_of(handover).put_result(0, _handover.pickled("once"))
    finally:
        _handover._Channel.send = original
    with socket.create_connection(("127.0.0.1", handover.port), timeout=30) as connection:
        _handover.read_exactly(connection, 32)
        connection.sendall(sent[0])
        assert connection.recv(1) == b""


def test_an_impostor_is_told_nothing(handover):
    """A server that does not know the key can't have a worker unpickle what it sends."""
    impostor = _handover.Handover(print, everywhere=False)
    with impostor, pytest.raises(OSError):
        worker_of(impostor, handover.key).get_function()
