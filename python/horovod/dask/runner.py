"""``horovod.dask.run`` and ``horovod.dask.run_elastic``."""

from collections.abc import Collection, Sequence
from typing import Any, Callable, Optional

import distributed

from horovod.dask._cluster import Cluster
from horovod.runner import _engine_run
from horovod.runner._engine_options import Options, check_call, check_counts, check_seconds
from horovod.runner._engine_run import Call, Sizes

_START_SECONDS = 600.0
_MANY = 1 << 16  # workers


def run(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[dict[str, Any]] = None,
    client: Any = None,
    num_workers: Optional[int] = None,
    start_timeout: float = _START_SECONDS,
    env: Optional[dict[str, str]] = None,
    stdout: Any = None,
    stderr: Any = None,
    verbose: int = 1,
    nics: Optional[Collection[str]] = None,
    executable: Optional[str] = None,
) -> list[Any]:
    """Calls ``fn(*args, **kwargs)`` in processes beside `num_workers` Dask workers and returns the results, in rank order.

    Args:
      fn: the function. On each rank it runs in a separate process, beside Dask's, and calls ``hvd.init()`` itself.
      args: its positional arguments.
      kwargs: its keyword arguments.
      client: the client of the cluster, by default the current one.
      num_workers: the number of processes, one beside each worker; by default all workers.
      start_timeout: the time in seconds for all tasks to start, e.g. for workers that are still to come.
      env: variables for the processes, in addition to those of Dask's workers.
      stdout, stderr: the streams for the lines that the processes print, each with ``[RANK]<stdout>:`` in front; by default
        ``sys.stdout`` and ``sys.stderr``.
      verbose: 0: nothing else is printed; 1: also events of the job; 2: also the messages of agents.
      nics: the names of network interfaces, or networks, for the processes' traffic.
      executable: the Python of the processes, by default that of Dask's workers.

    Returns:
      The results, in rank order.

    Raises:
      RuntimeError: the job failed; the text has the traceback of the process that failed first.
      TimeoutError: not all tasks have started in time.
      TypeError, ValueError: an argument is invalid, or there is no client.
    """
    options = Options(env, stdout, stderr, verbose, nics, False, executable)
    options.check()
    check_call(fn, args, kwargs)
    check_counts(num_workers=num_workers)
    check_seconds(start_timeout=start_timeout)
    cluster = _cluster_of(client)
    count = _number_of_processes(num_workers, cluster)
    return _engine_run.run_fixed(cluster, Call(fn, args, kwargs), options, count, start_timeout)


def run_elastic(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[dict[str, Any]] = None,
    client: Any = None,
    num_workers: Optional[int] = None,
    min_num_workers: Optional[int] = None,
    max_num_workers: Optional[int] = None,
    start_timeout: float = _START_SECONDS,
    elastic_timeout: Optional[float] = None,
    reset_limit: Optional[int] = None,
    env: Optional[dict[str, str]] = None,
    stdout: Any = None,
    stderr: Any = None,
    verbose: int = 1,
    nics: Optional[Collection[str]] = None,
    executable: Optional[str] = None,
) -> list[Any]:
    """Calls ``fn(*args, **kwargs)`` in processes beside as many Dask workers as there are, from `min_num_workers` to
    `max_num_workers`.

    New workers join, as after ``cluster.scale`` or with ``adapt``. Workers that are closed leave without the loss of a step.
    When a worker is lost, the others continue at once.

    Args:
      fn: the function, as for :func:`run`. It contains a function decorated with ``hvd.elastic.run``.
      num_workers: the number of processes at the start, by default all workers.
      min_num_workers: the minimum number of processes, by default `num_workers`.
      max_num_workers: the maximum number of processes; None: no limit.
      elastic_timeout: the time in seconds for `min_num_workers` processes to be available again, by default 600.
      reset_limit: how many changes end the job; None: no limit.
      args, kwargs, client, start_timeout, env, stdout, stderr, verbose, nics, executable: as for :func:`run`.

    Returns:
      The results of the processes that exist at the end, in rank order.

    Raises:
      RuntimeError, TimeoutError, TypeError, ValueError: as for :func:`run`.
    """
    options = Options(env, stdout, stderr, verbose, nics, False, executable)
    options.check()
    check_call(fn, args, kwargs)
    check_counts(num_workers=num_workers, min_num_workers=min_num_workers, max_num_workers=max_num_workers)
    check_counts(0, reset_limit=reset_limit)
    check_seconds(start_timeout=start_timeout, elastic_timeout=elastic_timeout)
    cluster = _cluster_of(client)
    count = _number_of_processes(num_workers, cluster)
    least, most = min_num_workers or count, max_num_workers or max(count, _MANY)
    if not least <= count <= most:
        raise ValueError(
            f"min_num_workers ({least}), num_workers ({count}) and max_num_workers ({most}) are not in this order"
        )
    sizes, call = Sizes(count, least, most), Call(fn, args, kwargs)
    return _engine_run.run_elastic(cluster, call, options, sizes, start_timeout, elastic_timeout, reset_limit)


def _cluster_of(client: Any) -> Cluster:
    if client is None:
        return Cluster(_current_client())
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a distributed.Client: Got {client!r}")
    return Cluster(client)


def _current_client() -> distributed.Client:
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError("there is no Dask client: make a distributed.Client(...) first, or give client=") from None


def _number_of_processes(num_workers: Optional[int], cluster: Cluster) -> int:
    count = len(cluster.workers()) if num_workers is None else num_workers
    if count < 1:
        raise ValueError(f"num_workers is {count}: at least one worker is needed")
    return count
