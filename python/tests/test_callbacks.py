"""Completion by callback, straight through the C ABI: what an adapter of a framework builds on."""

import array
import os
import threading

import pytest

import horovod.torch as hvd
from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError, HorovodRequestError

OPERATIONS = 100


class Calls:
    """Records the arguments of callbacks."""

    def __init__(self):
        self.made = []
        self.threads = set()
        self._enough = threading.Condition()

    def of(self, number):
        def done(handle, error):
            _ffi.release(handle)
            with self._enough:
                self.made.append((number, error))
                self.threads.add(threading.get_native_id())
                self._enough.notify_all()

        return done

    def wait_for(self, count):
        with self._enough:
            assert self._enough.wait_for(lambda: len(self.made) >= count, 120)


def allreduce_of(name, data):
    address, size = data.buffer_info()
    return _ffi.request(name, _ffi.ALLREDUCE, _ffi.FLOAT32, (size,), address, address)


def test_each_operation_is_called_back_once():
    calls = Calls()
    data = [array.array("f", [i]) for i in range(OPERATIONS)]
    for i, of_operation in enumerate(data):
        request = allreduce_of(f"callback.{i}", of_operation)
        _ffi.submit_then([request], 0, calls.of(i))
    calls.wait_for(OPERATIONS)
    assert sorted(number for number, _ in calls.made) == list(range(OPERATIONS))
    assert not any(error for _, error in calls.made)
    size = _ffi.query("size")
    assert [of_operation[0] for of_operation in data] == [i * size for i in range(OPERATIONS)]
    assert len(calls.threads) == 1 and threading.get_native_id() not in calls.threads


def test_callback_takes_the_result():
    mine = array.array("f", [_ffi.query("rank")])
    gathered, ended = [], threading.Event()

    def done(handle, error):
        result = _ffi.result(handle, 0)
        gathered.extend(memoryview(_ffi.memory(result.address, 4 * result.shape[0])).cast("B").cast("f"))
        _ffi.release(handle)
        ended.set()

    address, _ = mine.buffer_info()
    request = _ffi.request("callback.gather", _ffi.ALLGATHER, _ffi.FLOAT32, (1,), address)
    _ffi.submit_then([request], 0, done)
    assert ended.wait(120)
    assert gathered == list(range(_ffi.query("size")))


def test_mismatch_is_the_callbacks_error():
    if _ffi.query("size") == 1:
        pytest.skip("one rank matches itself")
    calls = Calls()
    data = array.array("f", [0] * (1 + _ffi.query("rank")))
    _ffi.submit_then([allreduce_of("callback.unlike", data)], 0, calls.of(0))
    calls.wait_for(1)
    assert isinstance(calls.made[0][1], HorovodRequestError)
    assert "callback.unlike" in str(calls.made[0][1])


def test_refused_request_is_never_called_back():
    calls = Calls()
    with pytest.raises(ValueError, match="name"):
        _ffi.submit_then([_ffi.request("", _ffi.BARRIER)], 0, calls.of(0))
    assert not _ffi._operations._callbacks


def test_callback_must_not_shut_down():
    refused, ended = [], threading.Event()

    def done(handle, error):
        _ffi.release(handle)
        try:
            _ffi.shutdown()
        except HorovodInternalError as refusal:
            refused.append(refusal)
        ended.set()

    _ffi.submit_then([_ffi.request("callback.leaves", _ffi.BARRIER)], 0, done)
    assert ended.wait(120)
    assert "none of them may call it" in str(refused[0])
    assert _ffi.query("size") > 0


def test_forked_child_is_refused_and_never_called_back():
    calls = Calls()
    _ffi.submit_then([_ffi.request("callback.parent", _ffi.BARRIER)], 0, calls.of(0))
    calls.wait_for(1)
    child = os.fork()
    if child == 0:
        try:
            _ffi.submit_then([_ffi.request("callback.child", _ffi.BARRIER)], 0, calls.of(1))
        except HorovodInternalError as refusal:
            os._exit(0 if "forked" in str(refusal) and len(calls.made) == 1 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_shutdown_calls_back_what_is_in_flight():
    calls = Calls()
    alone = _ffi.query("size") == 1
    expected = [0]
    try:
        # No other rank submits it.
        _ffi.submit_then([_ffi.request(f"callback.{_ffi.query('rank')}", _ffi.BARRIER)], 0, calls.of(0))
    except HorovodInternalError:
        expected = []  # another rank has left already
    hvd.shutdown()
    try:
        assert [number for number, _ in calls.made] == expected
        assert alone or all(isinstance(error, HorovodInternalError) for _, error in calls.made)
    finally:
        hvd.init()
