"""The loop that calls a training function again when the world changes."""

import functools
import inspect
import threading
from typing import Any, Callable, TypeVar

from horovod import _ffi
from horovod.common import basics, ops
from horovod.common.basics import process
from horovod.common.class_names import with_article
from horovod.common.exceptions import (
    CANCELLED,
    FAILED_PRECONDITION,
    NOT_FOUND,
    PERMISSION_DENIED,
    HorovodInternalError,
    HorovodRequestError,
    HostsUpdatedInterrupt,
    translating,
)
from horovod.common.util import is_elastic
from horovod.elastic import checkpoints, commit_protocol, commit_store, commits
from horovod.elastic.messages import say
from horovod.elastic.roll_call import call_roll
from horovod.elastic.runs import Passed, runs
from horovod.elastic.state import State

# A further reset would fail as well: the job is over, or does not know this process.
_FINAL = (CANCELLED, NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION)
_NO_COLLECTIVES = (
    "A collective between two runs: run {} under hvd.elastic.run was over before this process began, and the other ranks are in "
    "a later one. Let the function of a run compute and return what its ranks compute together."
)
_MAX_FAILED_RESETS = 10


class _NotificationManager:
    """Forwards notifications of changed hosts to states. It exists for code that calls it: the runtime detects changes itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[State] = []

    def init(self, *args: object, **kwargs: object) -> None:
        """Does nothing: there is no service to start."""

    def register_listener(self, listener: State) -> None:
        with self._lock:
            self._listeners.append(listener)

    def remove_listener(self, listener: State) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def handle_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Notifies all registered states that the hosts have changed."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.on_hosts_updated(timestamp, update_res)


notification_manager = _NotificationManager()

R = TypeVar("R")  # what the function that trains returns


def run_fn(func: Callable[..., R], reset: Callable[[], None]) -> Callable[..., R]:
    """Wraps a training function so that it survives changes of the world.

    The state is synchronized before the first call, and again whenever a rank of a new world lacks it. A
    :class:`HorovodInternalError` restores the last commit. A :class:`HostsUpdatedInterrupt` keeps the state; with
    ``skip_sync`` it is taken to be the same on all ranks, and only new members cause a synchronization. Then `reset` joins
    the next world, and the function is called again. The wrapper returns when the calls of all ranks have returned. In a
    worker that the job has released it ends the process with code 0. A :class:`HorovodRequestError` would occur again, so
    it ends the run, as any other exception does.

    Args:
      func: the training function, whose first argument is a :class:`State`.
      reset: a function that joins the next world.

    Returns:
      The wrapped function.
    """

    name = getattr(func, "__qualname__", type(func).__name__)
    _check_function(func, name)

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> R:
        _check_state(state, name)
        notification_manager.init()
        notification_manager.register_listener(state)
        try:
            call = functools.partial(func, state, *args, **kwargs)
            if runs.inside:  # part of the run that surrounds it
                return _loop(call, reset, state)
            return _as_run(call, reset, state, name)
        finally:
            notification_manager.remove_listener(state)

    return wrapper


def _check_function(func: object, name: str) -> None:
    for has_kind, kind in (
        (inspect.isgeneratorfunction, "a generator"),
        (inspect.iscoroutinefunction, "an async"),
        (inspect.isasyncgenfunction, "an async"),
    ):
        if has_kind(func):
            raise TypeError(
                f"{name} is {kind} function, whose body would run after hvd.elastic.run has ended: decorate a plain function, "
                "which returns when it has trained"
            )


def _check_state(state: object, name: str) -> None:
    if not isinstance(state, State):
        raise TypeError(
            f"the first argument of {name}, under hvd.elastic.run, is {with_article(state)}, not a state such as "
            "hvd.elastic.TorchState: call a method trainer.train by hvd.elastic.run(trainer.train)(state)"
        )


def run(func: Callable[..., R]) -> Callable[..., R]:
    """Decorates a training function so that training continues when workers fail, leave or join.

    The state is synchronized from rank 0, then the function is called. When a worker fails, the survivors return to the last
    ``state.commit()``. When the world is about to change without a failure, all ranks leave the function at the same commit
    and lose nothing. Then they join the next world, call the state's reset callbacks, synchronize the state if a rank lacks
    it, and call the function again. A worker whose host leaves the job ends here, with code 0.

    A script may have several runs, one after another. Commits, checkpoints and synchronizations belong to one of them. A
    process that starts during a later run passes the runs before it: each returns at once what it has returned before, with
    its state as it left it.

    Args:
      func: the training function, whose first argument is a :class:`State`.

    Returns:
      The decorated function. It raises what `func` raises, except for the errors that it recovers from;
      :class:`horovod.common.exceptions.HorovodRequestError` is not retried.

    Raises:
      TypeError: `func` is a generator function or an async one; or, when it is called, its first argument is no state.

    Example:
      >>> from horovod.elastic.loop import run
      >>> from horovod.elastic.state import ObjectState
      >>> @run
      ... def train(state):
      ...     while state.step < 3:
      ...         state.step += 1
      ...         state.commit()
      ...     return state.step
      >>> train(ObjectState(step=0))
      3
    """
    return run_fn(func, basics.reset)


def _as_run(call: Callable[[], R], reset: Callable[[], None], state: State, function: str) -> R:
    """Calls the loop as the next run of the script. Returns at once if that run has ended in the job."""
    process.uses_run = True
    runs.begin(state)
    checkpoints.end_reads()
    commit_store.give_to(state)
    state._begin_run()
    state._had_in_world = 0
    end = functools.partial(runs.end, function, state, keeps_final=is_elastic() or state._outlives_job())
    try:
        process.no_collectives = ""
        result = _loop(call, reset, state)
    except Passed:
        passed: R = runs.pass_(function, state)
        return passed
    except BaseException as error:
        end(error, raised=True)
        raise
    end(result, raised=False)
    return result


def _loop(call: Callable[[], R], reset: Callable[[], None], state: State) -> R:
    entering = True
    skip_sync = False
    lost = None
    while True:
        has_begun = False
        try:
            with translating():
                if entering:
                    entering = False
                    _enter(state)
                else:
                    _reset(reset)
                    _ffi.failpoint("worker.run.in_next_world")
                    _adopt_newer(state)
                    state.on_reset()
                    if _must_sync(skip_sync):
                        _sync(state)
                    skip_sync = False
                state._had_in_world = _ffi.query("epoch")
                _ffi.begin_training()
                has_begun = True
                result = call()
                _ffi.failpoint("worker.run.returned")
                # No rank leaves before all are done: if one fails, the others must continue with it
                # from the last commit.
                commits.end(commits.begin())
                _ffi.failpoint("worker.run.agreed_to_end")
                return result
        except HorovodRequestError:
            raise
        except _ResetFailed as failure:
            raise failure.error from lost
        except HorovodInternalError as error:
            lost = error
            if not has_begun:
                _ffi.forget_work()  # or world after world could break in the synchronization, without end
            _ffi.note_error(str(error), error.caused_by_peer)
            state.restore()
            _ffi.failpoint("worker.run.restored")
            if runs.is_over():
                # The commit in the store is of a later run. If it still counted, the next world might need no
                # sync, in which this process passes its run.
                commits.disown()
            skip_sync = False
        except HostsUpdatedInterrupt as interrupt:
            skip_sync = interrupt.skip_sync
            _note_interruption(state, interrupt)


def _note_interruption(state: State, interrupt: HostsUpdatedInterrupt) -> None:
    """Records how far this process has come, so that the next world knows which ranks need a sync."""
    if commit_protocol.is_interrupted_at_commit(state, interrupt):
        return
    if interrupt.skip_sync:
        # All ranks that were interrupted so are at the same step, as after a commit; new members are not.
        commits.count()
        commits.publish()
    else:
        commits.forget()  # the other ranks may be at another step


def _must_sync(skip_sync: bool) -> bool:
    """Returns whether the ranks of a new world synchronize, the same on all ranks. `skip_sync`: this rank was interrupted so."""
    if not _ffi.must_sync_state():
        return False
    if is_elastic():
        return True
    # The daemon does not count the commits of a static job. But a static job has no new members, so all ranks get here.
    if basics.is_initialized() and basics.size() > 1:
        return ops.max_over_ranks(0 if skip_sync else 1) == 1
    return not skip_sync


def _enter(state: State) -> None:
    if commits.newest() > 0 and not runs.has_passed:
        # Commits of an earlier run are not the start of this one.
        commits.forget()
    else:
        # First: if the world breaks now, the process with the newest commit may not be synchronized.
        _inherit(state)
        _ffi.failpoint("worker.run.inherited")
    if runs.is_over() and basics.is_deferred():
        _pass(together=False)  # the others train on
    basics.join_world()
    _adopt_newer(state)
    if basics.take_move():
        state.on_reset()
    _sync(state)


def _inherit(state: State) -> None:
    """Takes over the commit in the store if it is one of this run, and what it says of the runs before its own."""
    left = commit_store.inherited()
    if left is None:
        commits.forget()
        return state._inherit(None)
    _ffi.failpoint("worker.run.inherits")
    runs.adopt(left.past())
    if runs.is_in(left.run()):
        state._inherit(left)
    elif not runs.is_over():
        commits.disown()  # of an earlier run; that of a later one is taken over there
        state._inherit(None)


def _adopt_newer(state: State) -> None:
    """Lets rank 0 begin with the newest commit in its agent's memory, of whichever worker of its host or of another host, if
    that is newer than rank 0's own. No other member has that commit, or the job would have made that member rank 0.
    """
    if basics.is_initialized() and basics.rank() == 0 and _ffi.must_sync_state() and _ffi.store_take_kept():
        _ffi.failpoint("worker.run.adopts")
        _inherit(state)
        _ffi.failpoint("worker.run.adopted")


def _sync(state: State) -> None:
    """Synchronizes the state with the ranks that are in the same run. Raises Passed if others are in a later one; waits for those
    that are in an earlier one.
    """
    if not runs.is_under_way and (not basics.is_initialized() or basics.rank() == 0):
        state._look_for_later_runs()
    roll = call_roll()
    while not roll.is_complete:
        if roll.is_behind:
            _pass(together=roll.all_are_behind)
        roll = call_roll()
    _ffi.failpoint("worker.sync.roll_called")
    state._begins_run = not roll.is_under_way
    state._missed_world = 0 < state._had_in_world < _ffi.query("epoch") - 1
    commit_protocol.synchronize(state, begins_later_run=runs.number > 1 and not roll.is_under_way)
    state._begins_run = state._missed_world = False
    runs.is_under_way = True


def _pass(together: bool) -> None:
    """Leaves a run that is over. `together`: so do all other ranks, which then run the same lines of the script."""
    if not together or basics.rank() == 0:
        say(f"run {runs.number} of the script is over: going on with what it returned")
    if not together:
        process.no_collectives = _NO_COLLECTIVES.format(runs.number)
    raise Passed


class _ResetFailed(Exception):
    def __init__(self, error: HorovodInternalError) -> None:
        super().__init__(error)
        self.error = error


def _reset(reset: Callable[[], None]) -> None:
    """Joins the next world. Tries again if that world breaks while it forms."""
    failed = 0
    while True:
        try:
            return reset()
        except HorovodInternalError as error:
            failed += not error._lost_world  # the daemon bounds how long worlds are lost in a row
            final = isinstance(error, HorovodRequestError) or error.code in _FINAL
            if final or failed == _MAX_FAILED_RESETS:
                raise _ResetFailed(error) from None
