"""``horovod.run``: runs a Python function on several ranks."""

import functools
import warnings
from collections.abc import Collection, Sequence
from typing import Any, Callable, Optional, Union

from horovod.runner import _jobs
from horovod.runner._arguments import _as_arguments as _as_arguments
from horovod.runner._arguments import _HorovodArgs as _HorovodArgs


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[dict[str, Any]] = None,
    num_proc: Optional[int] = None,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Optional[tuple[int, int]] = None,
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
    network_interfaces: Union[str, Collection[str], None] = None,
    executable: Optional[str] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
) -> list[Any]:
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
      verbose, network_interfaces (names, or one text with commas): as horovodrun's flags.
      disable_cache, use_gloo: accepted; there is no cache, and it is always Gloo.
      executable: the Python to run; this one if not given.

    With `min_num_proc` only the first so many results are returned.

    Raises:
      ValueError: arguments contradict each other, or ask for MPI.
      RuntimeError: the job failed; the text has the traceback of the worker that failed first.
    """
    settings = _HorovodArgs()
    settings.num_proc = _renamed(num_proc, np, "np", "num_proc")
    settings.min_num_proc = _renamed(min_num_proc, min_np, "min_np", "min_num_proc")
    settings.max_num_proc = _renamed(max_num_proc, max_np, "max_np", "max_num_proc")
    settings.nics = _renamed(network_interfaces, network_interface, "network_interface", "network_interfaces")
    settings.slots, settings.reset_limit = slots, reset_limit
    settings.cooldown_range = cooldown_range
    settings.hosts, settings.hostfile = hosts, hostfile
    settings.host_discovery_script = host_discovery_script
    settings.start_timeout = start_timeout
    settings.ssh_port, settings.ssh_identity_file = ssh_port, ssh_identity_file
    settings.output_filename, settings.verbose = output_filename, verbose
    settings.use_gloo, settings.use_mpi, settings.mpi_args = use_gloo, use_mpi, mpi_args
    settings.disable_cache = disable_cache
    settings.executable = executable
    settings.run_func = functools.partial(func, *args, **(kwargs or {}))
    return _jobs.run_function(settings)


def _renamed(value: Any, old_value: Any, old: str, new: str) -> Any:
    if old_value is None:
        return value
    if value is not None:
        raise ValueError(f"{old} is an older name of {new}: give one of them")
    warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=3)
    return old_value
