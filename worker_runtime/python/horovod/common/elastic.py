"""Elastic training: state that can be committed and restored, and the loop that survives changes of
the world."""

import copy
import functools
import threading
from typing import Any, Callable, Dict, Iterable, List

from horovod import _ffi
from horovod.common.exceptions import (
    HorovodInternalError,
    HorovodRequestError,
    HostsUpdatedInterrupt,
)


class _NotificationManager:
    """Passes on word of changed hosts to states. The runtime hears of changes itself; this is for
    code that calls it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: List["State"] = []

    def init(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: there is no service to start."""

    def register_listener(self, listener: "State") -> None:
        with self._lock:
            self._listeners.append(listener)

    def remove_listener(self, listener: "State") -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def handle_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Tells all states that the hosts have changed."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.on_hosts_updated(timestamp, update_res)


notification_manager = _NotificationManager()


class State:
    """What training needs in order to go on somewhere else. Subclasses say how it is saved,
    restored and synchronized."""

    def __init__(
        self, bcast_object: Callable[..., Any] = None, get_rank: Callable[[], int] = None
    ) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks: List[Callable[[], None]] = []
        self._hosts_updated = False

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Has the functions called after every change of the world, e.g. to adjust the learning
        rate to the size."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called by the loop when a new world is up."""
        self._hosts_updated = False
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Called when the hosts have changed."""
        self._hosts_updated = True

    def commit(self) -> None:
        """Saves the state, then :meth:`check_host_updates`. Call it where training can go on from,
        e.g. after a step."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises :class:`HostsUpdatedInterrupt` if the world is about to change. No
        communication."""
        if self._hosts_updated or _ffi.world_is_changing():
            raise HostsUpdatedInterrupt()

    def save(self) -> None:
        """Copies the state to host memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Makes the state what it was at the last :meth:`save`."""
        raise NotImplementedError

    def sync(self) -> None:
        """Makes all ranks' states what rank 0's is."""
        raise NotImplementedError

    def reset(self) -> None:
        """Called after a change of the world, before the reset callbacks."""


class ObjectState(State):
    """State of plain Python values: ``ObjectState(bcast_object, get_rank, epoch=0, batch=0)`` has
    attributes epoch, batch.

    Values are copied deeply by save and restore.
    """

    def __init__(
        self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any
    ) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved_state: Dict[str, Any] = dict(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._saved_state = copy.deepcopy(self._saved_state)

    def _current(self) -> Dict[str, Any]:
        return {name: getattr(self, name) for name in self._saved_state}

    def save(self) -> None:
        self._saved_state = copy.deepcopy(self._current())

    def restore(self) -> None:
        for name, value in copy.deepcopy(self._saved_state).items():
            setattr(self, name, value)

    def sync(self) -> None:
        if self._saved_state:
            for name, value in self._bcast_object(self._current()).items():
                setattr(self, name, value)
        self.save()


def run_fn(func: Callable[..., Any], reset: Callable[[], None]) -> Callable[..., Any]:
    """Returns `func`, whose first argument is a :class:`State`, made to survive changes of the
    world.

    The state is synchronized before each call. A :class:`HorovodInternalError` restores the last
    commit, a :class:`HostsUpdatedInterrupt` keeps the state; then `reset` joins the next world and
    `func` is called again. Requests that do not match (:class:`HorovodRequestError`) would not
    match again: that error, like any other, ends the run.
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        notification_manager.init()
        notification_manager.register_listener(state)
        try:
            while True:
                try:
                    state.sync()
                    return func(state, *args, **kwargs)
                except HorovodRequestError:
                    raise
                except HorovodInternalError:
                    state.restore()
                except HostsUpdatedInterrupt:
                    pass
                reset()
                state.on_reset()
        finally:
            notification_manager.remove_listener(state)

    return wrapper
