"""``horovod.run``: runs a Python function on several ranks."""

import functools
import os
import subprocess
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from horovod.runner import _handover
from horovod.runner.launch import find_program

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

    The function, its arguments and results are pickled (cloudpickle). They are handed over in a
    private temporary folder, which hosts other than this one must see as well (a shared TMPDIR).

    Args:
      func, args, kwargs: what to call. It calls ``hvd.init()`` itself.
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
    if hosts is not None and hostfile is not None:
        raise ValueError("Argument hosts and hostfile only allow one provided.")
    if use_gloo and use_mpi:
        raise ValueError("Argument use_gloo and use_mpi only allow one set True.")
    if use_mpi or mpi_args:
        raise ValueError("This Horovod is built without MPI.")
    num_proc = _renamed(num_proc, np, "np", "num_proc")
    num_proc = 1 if num_proc is None else num_proc
    min_num_proc = _renamed(min_num_proc, min_np, "min_np", "min_num_proc")
    max_num_proc = _renamed(max_num_proc, max_np, "max_np", "max_num_proc")
    network_interfaces = _renamed(
        network_interfaces, network_interface, "network_interface", "network_interfaces"
    )
    flags = {
        "-np": num_proc,
        "--min-np": min_num_proc,
        "--max-np": max_num_proc,
        "--slots-per-host": slots,
        "--reset-limit": reset_limit,
        "--blacklist-cooldown-range": cooldown_range,
        "-H": hosts,
        "--hostfile": hostfile,
        "--host-discovery-script": host_discovery_script,
        "--start-timeout": start_timeout,
        "--ssh-port": ssh_port,
        "--ssh-identity-file": ssh_identity_file,
        "--output-filename": output_filename,
        "--network-interfaces": network_interfaces,
    }
    command = [find_program("horovodrun"), *_as_arguments(flags)]
    if verbose:
        command.append("--verbose")
    call = functools.partial(func, *args, **(kwargs or {}))
    return _run(command, executable or sys.executable, call, num_proc, min_num_proc)


def _renamed(value: Any, old_value: Any, old: str, new: str) -> Any:
    if old_value is None:
        return value
    if value is not None:
        raise ValueError("{} is an older name of {}: give one of them".format(old, new))
    warnings.warn("{} is now called {}".format(old, new), DeprecationWarning, stacklevel=3)
    return old_value


def _as_arguments(flags: Dict[str, Any]) -> List[str]:
    arguments = []
    for flag, value in flags.items():
        if value is not None:
            values = value if isinstance(value, (list, tuple)) else [value]
            arguments += [flag, *map(str, values)]
    return arguments


def _run(
    launch: List[str],
    python: str,
    call: Callable[[], Any],
    num_proc: int,
    min_num_proc: Optional[int],
) -> List[Any]:
    with tempfile.TemporaryDirectory(prefix="horovod-run-") as folder:  # mode 0700
        _handover.put_function(folder, call)
        status = _launch(launch + [python, "-m", "horovod.runner.run_task", folder])
        if status != 0:
            raise RuntimeError(_explain(status, _handover.failures(folder)))
        results = _handover.results(folder)
    count = min_num_proc or max(num_proc, len(results))
    missing = [rank for rank in range(count) if rank not in results]
    if missing:
        raise RuntimeError("horovod.run: no result came back from ranks {}".format(missing))
    return [results[rank] for rank in range(count)]


def _launch(command: List[str]) -> int:
    """Runs horovodrun and returns its exit status; an exception, such as Ctrl-C, ends it first."""
    environment = dict(os.environ)
    # The workers need this very package, wherever it was imported from.
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [package, environment.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _explain(status: int, failures: List[_handover.Failure]) -> str:
    text = "{}\nhorovodrun ended with status {}.".format(_FAILED, status)
    if failures:
        text += "\nRank {} raised:\n{}".format(failures[0].rank, failures[0].text)
    return text
