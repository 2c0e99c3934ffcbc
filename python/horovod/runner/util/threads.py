"""Functions run in threads."""

import contextlib
import queue
import threading
from collections.abc import Sequence
from typing import Any, Callable, Optional


def in_thread(
    target: Callable[..., Any],
    args: tuple[Any, ...] = (),
    name: Optional[str] = None,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Starts a thread that calls ``target(*args)``; `silent`: what it raises is dropped.

    Raises ValueError if `args` is no tuple.
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
    func: Callable[..., Any],
    args: tuple[Any, ...] = (),
    stop: Optional[threading.Event] = None,
    check_stop_interval_s: float = 1.0,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Starts a thread that calls ``func(*args)`` once `event` is set, unless `stop` is set first,
    which it looks at every `check_stop_interval_s` seconds.

    Raises ValueError if `event` is None, `args` is no tuple, or a thread that the process has to
    wait for could never end.
    """
    if event is None:
        raise ValueError("Event must not be None")
    _check_arguments(args)
    if stop is None and not daemon:
        raise ValueError("Stop event must be given for non-daemon event thread")

    def wait_and_call() -> None:
        while not event.wait(None if stop is None else check_stop_interval_s):
            if stop is not None and stop.is_set():
                return
        if stop is None or not stop.is_set():
            func(*args)

    return in_thread(wait_and_call, daemon=daemon, silent=silent)


def execute_function_multithreaded(
    fn: Callable[..., Any],
    args_list: Sequence[Sequence[Any]],
    block_until_all_done: bool = True,
    max_concurrent_executions: int = 1000,
) -> Optional[dict[int, Any]]:
    """Calls ``fn(*args)`` for each of `args_list`, many at a time. Returns the results by their
    numbers, or None at once if it is not to wait.

    Raises RuntimeError if a call has raised something.
    """
    work: queue.SimpleQueue[tuple[int, Sequence[Any]]] = queue.SimpleQueue()
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
        raise RuntimeError(f"Some threads for func {fn.__name__} did not complete successfully.")
    return results


def _check_arguments(args: Any) -> None:
    if not isinstance(args, tuple):
        raise ValueError(f"args must be a tuple, not {type(args)}, for a single argument use (arg,)")
