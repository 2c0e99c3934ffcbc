"""``horovod.run``: runs a Python function on several ranks."""

import functools
import warnings
from collections.abc import Collection, Sequence
from typing import Any, Callable, Optional, Union

from horovod.runner import _jobs
from horovod.runner._arguments import _as_arguments as _as_arguments
from horovod.runner._arguments import _HorovodArgs as _HorovodArgs


def run(
    func: Callable[..., object],
    args: Sequence[object] = (),
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

    The function, its arguments and its results are pickled with cloudpickle. They travel between this process and the
    workers over mutual TLS, with certificates made for this run. The output of the ranks appears on this process's
    ``sys.stdout`` and ``sys.stderr``. Arguments that are None have the default of horovodrun's flag.

    Args:
      func: the function. It calls ``hvd.init()`` itself, before it reads ranks or runs collectives.
      args: its positional arguments.
      kwargs: its keyword arguments.
      num_proc: the number of ranks (1).
      min_num_proc: the minimum number of ranks. Makes the job elastic; then only the first so many results are returned.
      max_num_proc: the maximum number of ranks. Makes the job elastic.
      slots: the number of slots of a host that `host_discovery_script` prints without a number.
      reset_limit: how many new worlds may be formed before the job is ended.
      cooldown_range: minimum and maximum time in seconds during which a slot is not used after failures.
      hosts: hosts and slots, as "host1:2,host2:4"; by default this host.
      hostfile: a file with lines "name slots=N", instead of `hosts`.
      host_discovery_script: a program that prints the available hosts, as host or host:slots. Makes the job elastic.
      start_timeout: the time in seconds for all hosts to be reached (HOROVOD_START_TIMEOUT or 30).
      ssh_port: the port of sshd on the hosts.
      ssh_identity_file: the private key for ssh.
      disable_cache: accepted for compatibility; there is no cache.
      output_filename: a folder. The output of each rank is also written to rank.N/stdout and rank.N/stderr in it.
      verbose: if true, the plan, the addresses and the time of each phase are printed.
      use_gloo: accepted for compatibility; Gloo is always used.
      use_mpi: must not be true: there is no MPI.
      mpi_args: must be None: there is no MPI.
      network_interface: older name of `network_interfaces`.
      network_interfaces: the names of the interfaces to use, or one string with commas.
      executable: the Python that runs the function, by default the one that runs this process.
      np: older name of `num_proc`.
      min_np: older name of `min_num_proc`.
      max_np: older name of `max_num_proc`.

    Returns:
      The results, in rank order.

    Raises:
      ValueError: arguments contradict each other, ask for MPI, or are refused by horovodrun.
      RuntimeError: the job failed. The text has the traceback of the worker that failed first.

    Example:
      >>> import horovod
      >>> horovod.run(lambda base: base + 2, args=(40,), num_proc=2)
      [42, 42]
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


def _renamed(value: object, old_value: object, old: str, new: str) -> Any:
    if old_value is None:
        return value
    if value is not None:
        raise ValueError(f"{old} is an older name of {new}: give one of them")
    warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=3)
    return old_value
