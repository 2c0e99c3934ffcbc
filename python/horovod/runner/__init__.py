"""``horovod.run``: runs a Python function on several ranks."""

import contextlib
import functools
import socket
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from horovod.runner import _handover
from horovod.runner._arguments import _as_arguments, _HorovodArgs, flags_of  # noqa: F401
from horovod.runner._launcher import Launcher

_FAILED = (
    "Horovod detected that one or more processes exited with non-zero status, thus causing the "
    "job to be terminated."
)


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Dict[str, Any]] = None,
    num_proc: Optional[int] = None,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Optional[Tuple[int, int]] = None,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    host_discovery_script: Optional[str] = None,
    start_timeout: Optional[int] = None,
    ssh_port: Optional[int] = None,
    ssh_identity_file: Optional[str] = None,
    disable_cache: Optional[bool] = None,
    output_filename: Optional[str] = None,
    verbose: Optional[int] = None,
    use_gloo: Optional[bool] = None,
    use_mpi: Optional[bool] = None,
    mpi_args: Optional[str] = None,
    network_interface: Optional[str] = None,
    network_interfaces: Optional[str] = None,
    executable: Optional[str] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
) -> List[Any]:
    """Calls ``func(*args, **kwargs)`` on `num_proc` ranks and returns the results, in rank order.

    The function, its arguments and results are pickled (cloudpickle) and travel over mutual TLS
    between this process and the workers, with certificates of this run. What the ranks print
    appears on this process's ``sys.stdout`` and ``sys.stderr``.

    Args:
      func, args, kwargs: what to call on each rank. It calls ``hvd.init()`` itself, before it asks
        for ranks or uses collectives.
      num_proc: number of ranks, 1 if not given. `np`, `min_np`, `max_np` and `network_interface`
        are older names.
      min_num_proc, max_num_proc, slots, reset_limit, cooldown_range, hosts, hostfile,
      host_discovery_script, start_timeout (seconds), ssh_port, ssh_identity_file, output_filename,
      verbose, network_interfaces: as horovodrun's flags.
      disable_cache, use_gloo: accepted; there is no cache, and it is always Gloo.
      executable: the Python to run; this one if not given.

    With `min_num_proc` only the first so many results are returned.

    Raises:
      ValueError: arguments contradict each other, or ask for MPI.
      RuntimeError: the job failed; its text has the traceback of the worker that failed first.
    """
    settings = _HorovodArgs()
    settings.num_proc = _renamed(num_proc, np, "np", "num_proc")
    settings.min_num_proc = _renamed(min_num_proc, min_np, "min_np", "min_num_proc")
    settings.max_num_proc = _renamed(max_num_proc, max_np, "max_np", "max_num_proc")
    settings.nics = _renamed(
        network_interfaces, network_interface, "network_interface", "network_interfaces"
    )
    settings.slots, settings.reset_limit = slots, reset_limit
    settings.cooldown_range = cooldown_range
    settings.hosts, settings.hostfile = hosts, hostfile
    settings.host_discovery_script = host_discovery_script
    settings.start_timeout = start_timeout
    settings.ssh_port, settings.ssh_identity_file = ssh_port, ssh_identity_file
    settings.output_filename, settings.verbose = output_filename, bool(verbose)
    settings.use_gloo, settings.use_mpi, settings.mpi_args = use_gloo, use_mpi, mpi_args
    settings.disable_cache = disable_cache
    settings.executable = executable
    settings.run_func = functools.partial(func, *args, **(kwargs or {}))
    return _run_function(settings)


def _renamed(value: Any, old_value: Any, old: str, new: str) -> Any:
    if old_value is None:
        return value
    if value is not None:
        raise ValueError("{} is an older name of {}: give one of them".format(old, new))
    warnings.warn("{} is now called {}".format(old, new), DeprecationWarning, stacklevel=3)
    return old_value


def _run_settings(settings: _HorovodArgs) -> Optional[List[Any]]:
    """Runs what `settings` say; returns the results of a function, or None for a command.

    Raises as :func:`run`.
    """
    if (settings.run_func is None) == (not settings.command):
        raise ValueError("One of run_func and command must be given.")
    if settings.run_func is not None:
        return _run_function(settings)
    status = _launch(flags_of(settings) + list(settings.command))
    if status != 0:
        raise RuntimeError(_explain(status, []))
    return None


def _run_function(settings: _HorovodArgs) -> List[Any]:
    if settings.num_proc is None:
        settings.num_proc = 1
    python = settings.executable or sys.executable
    task = [python, "-m", "horovod.runner.run_task"]
    handover = _handover.Handover(settings.run_func)
    status = _launch_with(handover, flags_of(settings) + task)
    if status != 0:
        raise RuntimeError(_explain(status, handover.failures()))
    results = handover.results()
    count = settings.min_num_proc or max(settings.num_proc, len(results))
    missing = [rank for rank in range(count) if rank not in results]
    if missing:
        raise RuntimeError("horovod.run: no result came back from ranks {}".format(missing))
    return [results[rank] for rank in range(count)]


def _launch(arguments: Sequence[str]) -> int:
    """Runs horovodrun and returns its exit status; an exception, such as Ctrl-C, ends it first."""
    launcher = Launcher(arguments)
    try:
        return launcher.wait()
    finally:
        launcher.stop()


def _launch_with(handover: _handover.Handover, arguments: Sequence[str]) -> int:
    """The same, for workers that meet `handover`."""
    with contextlib.ExitStack() as stack:
        own, launchers = map(stack.enter_context, socket.socketpair())
        flag = ["--handover", str(launchers.fileno())]
        launcher = Launcher([*flag, *arguments], pass_fds=[launchers.fileno()])
        stack.callback(launcher.stop)
        launchers.close()
        with contextlib.suppress(ConnectionError):  # horovodrun says itself why it has ended
            words, listeners = _handover.receive_credentials(own)
            server = handover.server(_handover.credentials_of(words), listeners)
            server.start()
            stack.callback(server.stop)
        return launcher.wait()


def _explain(status: int, failures: List[_handover.Failure]) -> str:
    text = "{}\nhorovodrun ended with status {}.".format(_FAILED, status)
    if failures:
        text += "\nRank {} raised:\n{}".format(failures[0].rank, failures[0].text)
    return text
