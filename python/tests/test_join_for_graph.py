"""The join of a newcomer whose first operation comes from a graph: called from C."""

import ctypes

import pytest

from horovod.common import _process
from horovod.common.exceptions import HorovodInternalError, WorkerReleased


def join_from_c():
    ctypes.CFUNCTYPE(None)(_process.join_world_for_graph)()


@pytest.mark.parametrize("error", [HorovodInternalError("rank 1 is gone"), WorkerReleased("the host leaves")])
def test_the_operation_tells_the_failure(monkeypatch, error):
    monkeypatch.setattr(_process, "join_world", lambda: raises(error))
    join_from_c()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(7)])
def test_what_a_signal_handler_raises_is_not_lost(monkeypatch, error):
    monkeypatch.setattr(_process, "join_world", lambda: raises(error))
    with pytest.raises(type(error)) as caught:
        join_from_c()
        while True:  # it comes soon
            pass
    assert caught.value.args == error.args


def raises(error):
    raise error
