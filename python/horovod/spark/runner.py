"""``horovod.spark.run`` and ``horovod.spark.run_elastic``."""

import inspect
import logging
import os
import warnings
from collections.abc import Collection, Sequence
from typing import Any, Callable, Optional

from horovod.runner import _engine_run
from horovod.runner._engine_options import Options, check_call, check_counts, check_seconds
from horovod.runner._engine_run import Call, Sizes
from horovod.spark._session import ClassicSession, RowsSession, Session, active_session

_logger = logging.getLogger("horovod.spark")
_START_SECONDS = 600
_ELASTIC_SECONDS = 600


def run(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[dict[str, Any]] = None,
    num_proc: Optional[int] = None,
    start_timeout: Optional[int] = None,
    use_mpi: Optional[bool] = None,
    use_gloo: Optional[bool] = None,
    extra_mpi_args: Optional[str] = None,
    env: Optional[dict[str, str]] = None,
    stdout: Any = None,
    stderr: Any = None,
    verbose: int = 1,
    nics: Optional[Collection[str]] = None,
    prefix_output_with_timestamp: bool = False,
    executable: Optional[str] = None,
) -> list[Any]:
    """Calls ``fn(*args, **kwargs)`` in `num_proc` concurrent Spark tasks and returns the results, in rank order.

    The tasks are one barrier stage: either all get a slot, or none does. With dynamic allocation, for which Spark has no
    barrier stages, they start as slots become free. Rank i is task i if the machines allow it: the ranks of a machine are
    consecutive.

    Args:
      fn: the function. It runs in a process of its own on each rank, beside Spark's, and calls ``hvd.init()`` itself.
      args: its positional arguments.
      kwargs: its keyword arguments.
      num_proc: the number of processes, by default ``spark.default.parallelism``.
      start_timeout: the time in seconds for all tasks to start, by default HOROVOD_SPARK_START_TIMEOUT or 600.
      use_mpi: must not be true: there is no MPI.
      use_gloo: accepted for compatibility; Gloo is always used.
      extra_mpi_args: accepted for compatibility; there is no MPI.
      env: variables for the processes, in addition to those of Spark's tasks.
      stdout, stderr: the streams for the lines that the processes print, each with ``[RANK]<stdout>:`` in front; by default
        ``sys.stdout`` and ``sys.stderr``.
      verbose: 0: nothing else is printed; 1: also events of the job; 2: also the messages of agents.
      nics: the names of network interfaces, or networks, for the processes' traffic.
      prefix_output_with_timestamp: whether each line begins with the time.
      executable: the Python of the processes, by default that of Spark's workers.

    Returns:
      The results, in rank order.

    Raises:
      RuntimeError: there is no Spark session, or the job failed; the text has the traceback of the process that failed
        first.
      TimeoutError: not all tasks have started in time.
      TypeError, ValueError: an argument is invalid.
    """
    options = Options(env, stdout, stderr, verbose, nics, prefix_output_with_timestamp, executable)
    return _run_fixed(active_session, Call(fn, args, kwargs), options, num_proc, start_timeout, use_mpi)


def run_on_rows(df: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """As :func:`run`, with the same arguments, in tasks that get the partitions of `df`, of which there are `num_proc`, in files
    (``horovod.spark.common._task_rows``)."""

    def session() -> Session:
        if not isinstance(active_session(), ClassicSession):
            raise RuntimeError("store=None needs a classic session, not one of Spark Connect; give a store")
        return RowsSession(df.sparkSession.sparkContext, df)

    bound = inspect.signature(run).bind(*args, **kwargs)
    bound.apply_defaults()
    of = bound.arguments
    options = Options(
        of["env"],
        of["stdout"],
        of["stderr"],
        of["verbose"],
        of["nics"],
        of["prefix_output_with_timestamp"],
        of["executable"],
    )
    call = Call(of["fn"], of["args"], of["kwargs"])
    return _run_fixed(session, call, options, of["num_proc"], of["start_timeout"], of["use_mpi"])


def _run_fixed(
    session_of: Callable[[], Session],
    call: Call,
    options: Options,
    num_proc: Optional[int],
    start_timeout: Optional[int],
    use_mpi: Optional[bool],
) -> list[Any]:
    options.check()
    check_call(call.function, call.args, call.kwargs)
    check_counts(num_proc=num_proc)
    if use_mpi:
        raise ValueError("use_mpi: this Horovod is built without MPI; leave it out, its processes use Gloo")
    session = session_of()
    count = _number_of_processes(num_proc, session, options.verbose)
    timeout = _start_timeout(start_timeout)
    barrier = session.setting("spark.dynamicAllocation.enabled", "false") != "true"
    return _engine_run.run_fixed(session, call, options, count, timeout, at_once=barrier)


def run_elastic(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[dict[str, Any]] = None,
    num_proc: Optional[int] = None,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    start_timeout: Optional[int] = None,
    elastic_timeout: Optional[int] = None,
    reset_limit: Optional[int] = None,
    env: Optional[dict[str, str]] = None,
    stdout: Any = None,
    stderr: Any = None,
    verbose: int = 1,
    nics: Optional[Collection[str]] = None,
    prefix_output_with_timestamp: bool = False,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
) -> list[Any]:
    """Calls ``fn(*args, **kwargs)`` in as many Spark tasks as there are slots for, from `min_num_proc` to `max_num_proc`.

    When an executor is lost, the other processes continue at once. Spark starts the lost tasks again elsewhere, and they join
    as new members: ``spark.task.maxFailures`` must allow for that (``horovod.spark.conf``). A process that fails is started
    again in its task.

    Args:
      fn: the function, as for :func:`run`. It contains a function decorated with ``hvd.elastic.run``.
      num_proc: the number of processes at the start, by default ``spark.default.parallelism``.
      min_num_proc: the minimum number of processes, by default `num_proc`.
      max_num_proc: the maximum number of processes, by default `num_proc`.
      elastic_timeout: the time in seconds for `min_num_proc` processes to be available again, by default
        HOROVOD_ELASTIC_TIMEOUT or 600.
      reset_limit: how many changes end the job; None: no limit.
      args, kwargs, start_timeout, env, stdout, stderr, verbose, nics, prefix_output_with_timestamp: as for :func:`run`.
      min_np, max_np: older names of `min_num_proc` and `max_num_proc`.

    Returns:
      The results of the processes that exist at the end, in rank order.

    Raises:
      RuntimeError, TimeoutError, TypeError, ValueError: as for :func:`run`.
    """
    options = Options(env, stdout, stderr, verbose, nics, prefix_output_with_timestamp, None)
    options.check()
    check_call(fn, args, kwargs)
    check_counts(num_proc=num_proc, min_num_proc=min_num_proc, max_num_proc=max_num_proc, min_np=min_np, max_np=max_np)
    check_counts(0, reset_limit=reset_limit)
    session = active_session()
    count = _number_of_processes(num_proc, session, verbose)
    least = _newer("min_num_proc", min_num_proc, "min_np", min_np, count)
    most = _newer("max_num_proc", max_num_proc, "max_np", max_np, count)
    if not 1 <= least <= count <= most:
        raise ValueError(f"min_num_proc ({least}), num_proc ({count}) and max_num_proc ({most}) are not in this order")
    if elastic_timeout is None:
        elastic_timeout = _seconds_of_variable("HOROVOD_ELASTIC_TIMEOUT", _ELASTIC_SECONDS)
    check_seconds(elastic_timeout=elastic_timeout)
    timeout = _start_timeout(start_timeout)
    _warn_of_few_failures(session)
    sizes, call = Sizes(count, least, most), Call(fn, args, kwargs)
    return _engine_run.run_elastic(session, call, options, sizes, timeout, elastic_timeout, reset_limit)


def _newer(name: str, value: Optional[int], old_name: str, old_value: Optional[int], default: int) -> int:
    """The value of an argument that has an older name."""
    if old_value is None:
        return default if value is None else value
    if value is not None:
        raise ValueError(f"{old_name} is an older name of {name}: give one of them")
    warnings.warn(f"{old_name} is deprecated, use {name} instead", DeprecationWarning, stacklevel=3)
    return old_value


def _number_of_processes(num_proc: Optional[int], session: Session, verbose: int) -> int:
    count = session.parallelism() if num_proc is None else num_proc
    if verbose >= 1:
        inferred = " (inferred from spark.default.parallelism)" if num_proc is None else ""
        _logger.info("Running %d processes%s...", count, inferred)
    return count


def _start_timeout(given: Optional[int]) -> int:
    check_seconds(start_timeout=given)
    return _seconds_of_variable("HOROVOD_SPARK_START_TIMEOUT", _START_SECONDS) if given is None else given


def _seconds_of_variable(name: str, default: int) -> int:
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name}: '{text}' is not a whole number of seconds, as {default}")
    return int(text)


def _warn_of_few_failures(session: Session) -> None:
    failures = int(session.setting("spark.task.maxFailures", "4"))
    if failures < 100:
        _logger.warning(
            "spark.task.maxFailures is %d: Spark ends the job when a task has lost so many executors. "
            "conf.set(*horovod.spark.conf.SPARK_CONF_ALWAYS_RESTART_FAILED_TASK) removes this limit.",
            failures,
        )
