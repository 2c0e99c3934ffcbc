"""Functions that run in threads."""

import contextlib
import queue
import threading
from collections.abc import Sequence
from typing import Any, Callable, Optional


def in_thread(
    target: Callable[..., object],
    args: tuple[object, ...] = (),
    name: Optional[str] = None,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Starts a thread that calls ``target(*args)``.

    Args:
      target: the function.
      args: its positional arguments, a tuple.
      name: the thread's name.
      daemon: whether the process may end while the thread runs.
      silent: whether exceptions of the function are dropped.

    Returns:
      The thread.

    Raises:
      ValueError: `args` is not a tuple.
    """
    _check_arguments(args)

    def quietly() -> None:
        with contextlib.suppress(BaseException):
            target(*args)

    thread = threading.Thread(
        target=quietly if silent else target, args=() if silent else args, name=name, daemon=daemon
    )
    thread.start()
    return thread


def on_event(
    event: threading.Event,
    func: Callable[..., object],
    args: tuple[object, ...] = (),
    stop: Optional[threading.Event] = None,
    check_stop_interval_s: float = 1.0,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Starts a thread that calls ``func(*args)`` when `event` is set, unless `stop` is set first.

    Args:
      event: the event to wait for.
      func: the function.
      args: its positional arguments, a tuple.
      stop: an event that ends the thread without a call.
      check_stop_interval_s: how often `stop` is checked, in seconds.
      daemon: whether the process may end while the thread runs.
      silent: whether exceptions of the function are dropped.

    Returns:
      The thread.

    Raises:
      ValueError: `event` is None; `args` is not a tuple; or `stop` is None although `daemon` is false, so the process might
        never end.
    """
    if event is None:
        raise ValueError("Event must not be None")
    _check_arguments(args)
    if stop is None and not daemon:
        raise ValueError("a thread that is no daemon needs a stop event, or it could not be ended: pass stop")

    def wait_and_call() -> None:
        while not event.wait(None if stop is None else check_stop_interval_s):
            if stop is not None and stop.is_set():
                return
        if stop is None or not stop.is_set():
            func(*args)

    return in_thread(wait_and_call, daemon=daemon, silent=silent)


def execute_function_multithreaded(
    fn: Callable[..., object],
    args_list: Sequence[Sequence[object]],
    block_until_all_done: bool = True,
    max_concurrent_executions: int = 1000,
) -> Optional[dict[int, Any]]:
    """Calls ``fn(*args)`` for each element of `args_list`, in several threads.

    Args:
      fn: the function.
      args_list: the positional arguments of each call.
      block_until_all_done: whether to wait for all calls.
      max_concurrent_executions: the maximum number of threads.

    Returns:
      The results by the numbers of their calls; None if it does not wait.

    Raises:
      RuntimeError: a call has raised an exception.
    """
    work: queue.SimpleQueue[tuple[int, Sequence[object]]] = queue.SimpleQueue()
    for numbered in enumerate(args_list):
        work.put(numbered)
    results: dict[int, Any] = {}

    def execute() -> None:
        while True:
            try:
                number, args = work.get_nowait()
            except queue.Empty:
                return
            results[number] = fn(*args)

    count = min(max_concurrent_executions, len(args_list))
    threads: list[threading.Thread] = [in_thread(execute, daemon=not block_until_all_done) for _ in range(count)]
    if not block_until_all_done:
        return None
    for thread in threads:
        thread.join()
    if len(results) != len(args_list):
        raise RuntimeError(f"Some threads for func {getattr(fn, '__name__', fn)} did not complete successfully.")
    return results


def _check_arguments(args: object) -> None:
    if not isinstance(args, tuple):
        raise ValueError(f"args must be a tuple, not {type(args).__name__}: write (x,) for one argument x")
