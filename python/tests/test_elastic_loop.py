"""The loop of hvd.elastic.run and its commits, with the runtime's answers given by the test. In one
process."""

import subprocess
import sys

import pytest

import horovod.torch as hvd
from horovod import _ffi
from horovod.common import _process, basics, ops
from horovod.common.exceptions import (
    ABORTED,
    DATA_LOSS,
    FAILED_PRECONDITION,
    RELEASED,
    UNAVAILABLE,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    WorkerReleased,
    error_of_status,
)
from horovod.elastic import commits
from horovod.elastic.loop import run_fn
from horovod.elastic.runs import runs
from horovod.elastic.state import State


class Recording(State):
    """Records calls; has one value."""

    def __init__(self):
        super().__init__()
        self.calls, self.value, self.saved = [], 0, 0
        self.register_reset_callbacks([lambda: self.calls.append("callback")])

    def save(self):
        self.saved = self.value

    def restore(self):
        self.calls.append("restore")
        self.value = self.saved

    def sync(self):
        self.calls.append("sync")

    def reset(self):
        self.calls.append("reset")


class Runtime:
    """The answers of the runtime, and a record of the calls that it gets."""

    def __init__(self, monkeypatch):
        self.must_sync, self.changing, self.told, self.failures = True, False, [], []
        monkeypatch.setattr(_ffi, "must_sync_state", lambda: self.must_sync)
        monkeypatch.setattr(_ffi, "world_is_changing", lambda: self.changing)
        monkeypatch.setattr(_ffi, "set_commit", lambda commit: self.told.append(commits.number_of(commit)))
        monkeypatch.setattr(commits, "_newest", 0)

    def reset(self):
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture
def runtime(monkeypatch):
    return Runtime(monkeypatch)


def raising(*errors):
    """A function that raises these, one after another, and then returns "done"."""
    left = list(errors)

    def func(state):
        state.calls.append("call")
        if left:
            raise left.pop(0)
        return "done"

    return func


def run(runtime, func, state):
    return run_fn(func, runtime.reset)(state)


def test_failure_restores_then_resets_then_syncs(runtime):
    state = Recording()
    assert run(runtime, raising(HorovodInternalError()), state) == "done"
    again = ["restore", "reset", "callback", "sync", "call"]
    assert state.calls == ["sync", "call"] + again


def test_errors_are_noted_with_whether_a_peer_caused_them(runtime, monkeypatch):
    told = []
    monkeypatch.setattr(_ffi, "note_error", lambda *noted: told.append(noted))
    by_peers = [HorovodInternalError("peer", code=code) for code in (UNAVAILABLE, ABORTED, DATA_LOSS)]
    assert run(runtime, raising(*by_peers, HorovodInternalError("own")), Recording()) == "done"
    assert told == [("peer", True)] * 3 + [("own", False)]


def test_planned_change_keeps_the_state_and_skips_a_needless_sync(runtime):
    state = Recording()
    runtime.must_sync = False
    assert run(runtime, raising(HostsUpdatedInterrupt()), state) == "done"
    assert state.calls == ["sync", "call", "reset", "callback", "call"]


def test_interruption_that_skips_the_sync_counts_as_equally_far(runtime):
    """So that the next world syncs only for those that were not interrupted so."""
    state = Recording()
    runtime.must_sync = False
    state.commit()
    assert run(runtime, raising(HostsUpdatedInterrupt(skip_sync=True)), state) == "done"
    assert state.calls == ["sync", "call", "reset", "callback", "call"]
    # 0 on entering, 1 after the sync, 2 for the interruption
    assert runtime.told == [1, 0, 1, 2]


def test_a_process_alone_skips_the_sync_that_it_was_asked_to_skip(runtime):
    errors = [HostsUpdatedInterrupt(skip_sync=True), HostsUpdatedInterrupt()]
    state = Recording()
    assert run(runtime, raising(*errors), state) == "done"
    reset = ["reset", "callback"]
    assert state.calls == ["sync", "call", *reset, "call", *reset, "sync", "call"]


def test_a_failure_after_an_interruption_syncs(runtime):
    state = Recording()
    runtime.failures = [HorovodInternalError("a peer", code=UNAVAILABLE)]
    errors = [HostsUpdatedInterrupt(skip_sync=True), HorovodInternalError()]
    assert run(runtime, raising(*errors), state) == "done"
    assert state.calls[-5:] == ["restore", "reset", "callback", "sync", "call"]


def test_entering_always_syncs(runtime):
    state = Recording()
    runtime.must_sync = False
    run(runtime, raising(), state)
    run(runtime, raising(), state)
    assert state.calls == ["sync", "call"] * 2


def test_failure_while_the_world_forms_tries_again(runtime):
    state = Recording()
    runtime.failures = [HorovodInternalError("a peer", code=UNAVAILABLE)] * 3
    assert run(runtime, raising(HorovodInternalError()), state) == "done"
    assert state.calls.count("restore") == 1 and state.calls.count("reset") == 1


def test_failure_of_a_sync_restores_and_resets(runtime):
    state = Recording()
    failing = [HorovodInternalError(code=UNAVAILABLE)] * 2

    def sync():
        state.calls.append("sync")
        if failing:
            raise failing.pop()

    state.sync = sync
    assert run(runtime, raising(), state) == "done"
    assert state.calls == ["sync", "restore", "reset", "callback"] * 2 + ["sync", "call"]


@pytest.mark.parametrize(
    "failures",
    [
        [HorovodInternalError("the job is over", code=FAILED_PRECONDITION)],
        [HorovodInternalError("nobody there", code=UNAVAILABLE)] * 100,
    ],
)
def test_reset_that_can_not_succeed_ends_the_run(runtime, failures):
    lost, state = HorovodInternalError("a peer is gone", code=UNAVAILABLE), Recording()
    runtime.failures = list(failures)
    with pytest.raises(HorovodInternalError, match=str(failures[0])) as caught:
        run(runtime, raising(lost), state)
    assert caught.value.__cause__ is lost and state.calls.count("call") == 1


def test_reset_is_tried_as_long_as_worlds_are_lost_that_were_entered(runtime, monkeypatch):
    """The daemon bounds the time, and ends the job."""
    monkeypatch.setattr(_ffi, "forget_work", lambda: None)
    monkeypatch.setattr(_ffi, "note_error", lambda *_: None)
    runtime.failures = [HorovodInternalError("a peer is gone", code=UNAVAILABLE) for _ in range(100)]
    reset = runtime.reset
    monkeypatch.setattr(runtime, "reset", lambda: _process.prepare(reset))
    assert run(runtime, raising(HorovodInternalError("a peer is gone", code=UNAVAILABLE)), Recording()) == "done"
    assert not runtime.failures


def test_deferred_process_joins_first_and_is_reset_only_if_it_moved(runtime, monkeypatch):
    for moved in (False, True):
        state, joined = Recording(), []
        monkeypatch.setattr(basics, "join_world", lambda joined=joined, state=state: joined.append(list(state.calls)))
        monkeypatch.setattr(_process.process, "moved", moved)
        run(runtime, raising(), state)
        assert joined[0] == []
        assert state.calls == ["reset", "callback"] * moved + ["sync", "call"]


def test_join_gives_the_ranks_of_the_world(monkeypatch):
    numbers = dict.fromkeys(_process.World._fields, 3)
    monkeypatch.setattr(_ffi, "query", lambda what: numbers[what])
    monkeypatch.setattr(_ffi, "join_world", lambda: numbers.update(rank=5))
    before = _process.process.world
    monkeypatch.setattr(_process.process, "world", _process.World(*numbers.values()))
    monkeypatch.setattr(_process.process, "deferred", True)
    with ops.naming("kind", None) as first:  # joins
        pass
    assert hvd.rank() == 5 and basics.take_move() and not basics.take_move()
    with ops.naming("kind", None) as second:
        pass
    assert (first, second) == ("kind.noname.0", "kind.noname.1")
    assert not _process.process.deferred and before is not None


def test_commits_are_counted_and_told(runtime):
    state = Recording()
    for _ in range(3):
        state.value += 1
        state.commit()
    state.check_host_updates()
    assert runtime.told == [1, 2, 3] and state.saved == 3 and commits.newest() == 3


def test_failed_commit_keeps_the_one_before(runtime, monkeypatch):
    state = hvd.elastic.TorchState(value=1)
    state.commit()
    state.value = 2

    def broken(operation):
        raise HorovodInternalError(code=UNAVAILABLE)

    with monkeypatch.context() as patch:
        patch.setattr(commits, "end", broken)
        with pytest.raises(HorovodInternalError):
            state.commit()
    state.restore()
    assert state.value == 1 and runtime.told == [1]
    state.save = lambda: None
    state.commit()  # saves nothing, and does not get what the failed commit had put aside
    state.restore()
    assert state.value == 1


def test_no_commit_counts_in_a_world_that_was_given_up(runtime, monkeypatch):
    def given_up():
        raise HorovodInternalError("this world was given up by the job")

    monkeypatch.setattr(basics, "is_initialized", lambda: True)
    monkeypatch.setattr(basics, "size", lambda: 1)
    monkeypatch.setattr(ops, "check_ready", lambda: None)
    monkeypatch.setattr(_ffi, "check_world", given_up)
    state = Recording()
    state.value = 5
    with pytest.raises(HorovodInternalError, match="given up"):
        state.commit()
    assert (state.saved, commits.newest(), runtime.told) == (0, 0, [])


@pytest.mark.parametrize("method", ["commit", "check_host_updates"])
def test_interruption_is_a_commit(runtime, method):
    """So that ranks that were not interrupted, because a peer died then, are known to be behind."""
    state = hvd.elastic.TorchState(value=1)
    runtime.changing = True
    state.value = 2
    with pytest.raises(HostsUpdatedInterrupt):
        getattr(state, method)()
    state.value = 3
    state.restore()
    assert state.value == 2 and runtime.told == [1]


def test_interruption_at_no_commit_disowns_the_commit(runtime):
    state = Recording()
    state.commit()
    run(runtime, raising(HostsUpdatedInterrupt()), state)
    # 0 on entering; 1 after the sync; 0 for the interruption; 1 again after the next sync
    assert runtime.told == [1, 0, 1, 0, 1]


def test_save_is_called_after_a_sync_and_before_a_change(runtime):
    state = Recording()
    state.save = lambda: state.calls.append("save")
    run(runtime, raising(), state)
    assert state.calls == ["sync", "save", "call"]
    state.check_host_updates()
    assert state.calls[-1] == "call"
    runtime.changing = True
    with pytest.raises(HostsUpdatedInterrupt):
        state.check_host_updates()
    assert state.calls[-1] == "save"


def test_save_without_commit_is_no_commit(runtime):
    state = hvd.elastic.TorchState(value=1)
    state.commit()
    state.save()
    assert runtime.told == [1, 0]


def test_status_of_a_released_worker():
    error = error_of_status(RELEASED, "its host leaves")
    assert isinstance(error, WorkerReleased) and not isinstance(error, Exception)
    assert error.code == 0 and str(error) == "its host leaves"


_RELEASED_IN_LOOP = """
import horovod.torch as hvd
from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError, error_of_status

def released():
    raise error_of_status(100, "its host leaves")

hvd.init()
_ffi.{call} = released
{rest}
print("not reached")
"""


@pytest.mark.parametrize(
    "call, rest",
    [
        ("init", "hvd.shutdown(); hvd.init()"),
        (
            "reset",
            (
                "@hvd.elastic.run\ndef train(state):\n    raise hvd.HorovodInternalError()\n"
                "train(hvd.elastic.TorchState(epoch=0))"
            ),
        ),
    ],
)
def test_released_worker_ends_quietly(call, rest):
    script = _RELEASED_IN_LOOP.format(call=call, rest=rest)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=100)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def yields(state):
    yield state


async def waits(state):
    return state


async def yields_later(state):
    yield state


@pytest.mark.parametrize("function", [yields, waits, yields_later])
def test_function_whose_body_would_run_later_is_refused(function):
    with pytest.raises(TypeError, match=f"{function.__name__} is an? .* function, whose body would run after"):
        hvd.elastic.run(function)


class Trainer:
    @hvd.elastic.run
    def train(self, state):
        raise AssertionError("it has begun")

    def fit(self, state):
        return "trained"


def test_call_without_a_state_is_refused_before_a_run_begins():
    before = runs.number
    with pytest.raises(TypeError, match=r"first argument of Trainer\.train, .* is a Trainer, not a state"):
        Trainer().train(hvd.elastic.ObjectState())
    assert runs.number == before
    assert hvd.elastic.run(Trainer().fit)(hvd.elastic.ObjectState()) == "trained"
