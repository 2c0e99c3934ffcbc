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
    """Calls ``fn(*args, **kwargs)`` beside `num_workers` Dask workers at once and returns the results, in rank order.

    Args:
      fn, args, kwargs: what to call on each rank, in a process of its own beside Dask's. It calls ``hvd.init()`` itself.
      client: of the cluster; default: the current one.
      num_workers: number of processes, one on a worker; default: all workers.
      start_timeout: seconds for all tasks to begin: for workers that are still to come.
      env: variables for the processes, beside those of Dask's workers.
      stdout, stderr: where lines that the processes print go, with ``[RANK]<stdout>:`` in front; default: ``sys.stdout``
        and ``sys.stderr``.
      verbose: 0: nothing beside that, 1: also what happens to the job, 2: also what agents say.
      nics: names of network interfaces, or networks, for the processes' traffic.
      executable: the Python of the processes; that of Dask's workers if not given.

    Raises:
      RuntimeError: the job failed; the text has the traceback of the process that failed first.
      TimeoutError: not all tasks have begun in time.
      TypeError, ValueError: arguments that can't be right, or there is no client.
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
    """Calls ``fn(*args, **kwargs)`` beside as many Dask workers as there are, from `min_num_workers` to `max_num_workers`, and
    returns the results of those that were there at the end, in rank order. `fn` has ``hvd.elastic.run`` in it.

    Workers that come take part, as with ``cluster.scale`` or ``adapt``; those that are closed leave without the loss of a
    step; when one is lost, the others go on at once.

    Args:
      num_workers: number of processes to start with; default: all workers.
      min_num_workers, max_num_workers: default: `num_workers`, and no limit.
      elastic_timeout: seconds for `min_num_workers` processes to be there again; default: 600.
      reset_limit: end the job after so many changes; default: no limit.
      Others: as for :func:`run`.

    Raises: as :func:`run`.
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
