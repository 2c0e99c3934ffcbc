"""What runs the training function of an estimator."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import horovod.spark
from horovod.spark._session import active_session
from horovod.spark.runner import run_on_rows

# Which GPUs and which folders of Python's a process uses, its Spark task says.
_OF_THE_TASK = ("CUDA_VISIBLE_DEVICES", "PYTHONPATH")


class Backend:
    """Runs a function in several processes that call ``hvd.init()``. Derive a class to run the trainings of estimators
    elsewhere."""

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> list[Any]:
        """Calls ``fn(*args, **kwargs)`` in :meth:`num_processes` processes with these further environment variables; returns
        the results in rank order."""
        raise NotImplementedError

    def num_processes(self) -> int:
        raise NotImplementedError


class SparkBackend(Backend):
    """Runs it in Spark tasks, by :func:`horovod.spark.run`.

    Args:
      num_proc: number of processes; default: how many tasks Spark runs at once.
      env: environment variables of the processes; default: this process's, without CUDA_VISIBLE_DEVICES and PYTHONPATH,
        which are those of the tasks.
      run_kwargs: further arguments of :func:`horovod.spark.run`.
    """

    def __init__(
        self, num_proc: Optional[int] = None, env: Optional[Mapping[str, str]] = None, **run_kwargs: Any
    ) -> None:
        self._num_proc = num_proc or active_session().parallelism()
        self._env = None if env is None else dict(env)
        self._run_kwargs = run_kwargs

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> list[Any]:
        environment = {**self._environment(), **(env or {})}
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
        """As :meth:`run`; each process gets a partition of `df`, which has :meth:`num_processes` of them."""
        environment = {**self._environment(), **(env or {})}
        return run_on_rows(
            df, fn, args, dict(kwargs or {}), num_proc=self._num_proc, env=environment, **self._run_kwargs
        )

    def _environment(self) -> dict[str, str]:
        if self._env is not None:
            return self._env
        return {name: value for name, value in os.environ.items() if name not in _OF_THE_TASK}

    def num_processes(self) -> int:
        return self._num_proc
