"""Backends, which run the training function of an estimator."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import horovod.spark
from horovod.spark._session import active_session
from horovod.spark.runner import run_on_rows

# Each process gets it from its Spark task. The driver hides its GPUs so that no framework takes memory there.
_GPUS = "CUDA_VISIBLE_DEVICES"


def default_num_proc() -> int:
    """Returns the number of tasks that Spark runs at once, with which :class:`SparkBackend` begins by default.

    Raises:
      RuntimeError: there is no Spark session.
    """
    return active_session().parallelism()


class Backend:
    """Runs a function in several processes that call ``hvd.init()``. Derive a class to run the trainings of estimators elsewhere."""

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> list[Any]:
        """Calls ``fn(*args, **kwargs)`` in :meth:`num_processes` processes.

        Args:
          fn: the function.
          args: its positional arguments.
          kwargs: its keyword arguments.
          env: further environment variables of the processes.

        Returns:
          The results, in rank order.
        """
        raise NotImplementedError

    def num_processes(self) -> int:
        """Returns the number of processes."""
        raise NotImplementedError


class SparkBackend(Backend):
    """Runs the function in Spark tasks, with :func:`horovod.spark.run`.

    Args:
      num_proc: the number of processes, by default the number of tasks that Spark runs at once.
      env: the environment variables of the processes, by default those of this process without PYTHONPATH, which the tasks
        set. CUDA_VISIBLE_DEVICES is left out in any case: the tasks set it, too.
      run_kwargs: further arguments of :func:`horovod.spark.run`.
    """

    def __init__(
        self, num_proc: Optional[int] = None, env: Optional[Mapping[str, str]] = None, **run_kwargs: Any
    ) -> None:
        self._num_proc = num_proc or active_session().parallelism()
        self._env = dict(env or {})
        self._run_kwargs = run_kwargs

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> list[Any]:
        environment = self._environment(env)
        return horovod.spark.run(
            fn, args, dict(kwargs or {}), num_proc=self._num_proc, env=environment, **self._run_kwargs
        )

    def run_on_rows(
        self,
        df: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> list[Any]:
        """Does what :meth:`run` does; each process gets a partition of a DataFrame.

        Args:
          df: the DataFrame, which has :meth:`num_processes` partitions.
          fn, args, kwargs, env: as for :meth:`run`.

        Returns:
          The results, in rank order.
        """
        environment = self._environment(env)
        return run_on_rows(
            df, fn, args, dict(kwargs or {}), num_proc=self._num_proc, env=environment, **self._run_kwargs
        )

    def _environment(self, env: Optional[Mapping[str, str]]) -> dict[str, str]:
        own = self._env or {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {name: value for name, value in {**own, **(env or {})}.items() if name != _GPUS}

    def num_processes(self) -> int:
        return self._num_proc
