"""The executor that starts workers on a Ray cluster and runs functions in them."""

from collections.abc import Sequence
from typing import Any, Callable, Optional

import ray
import ray.util.client

from horovod.ray.adapter import Callbacks, check_callbacks, variables_of
from horovod.ray.elastic_v2 import ElasticAdapter, ElasticParams
from horovod.ray.parcel import Executable
from horovod.ray.settings import MiniSettings as MiniSettings
from horovod.ray.settings import Networks
from horovod.ray.static import StaticAdapter, StaticParams
from horovod.runner._engine_options import (
    check_arguments,
    check_call,
    check_counts,
    check_flags,
    check_function,
    check_seconds,
    check_whole_numbers,
)


class RayExecutor:
    """Runs functions in workers that are actors of a Ray cluster. Only one thread may use it.

    Args:
      settings: what :meth:`create_settings` returned.
      num_workers: the number of workers, which are placed close to one another.
      num_hosts, num_workers_per_host: instead of `num_workers`, the number of nodes and of workers on each.
      cpus_per_worker: the number of CPUs of each worker.
      use_gpu: whether the workers use GPUs. The local rank is the number of a worker's GPU among those that it sees.
      gpus_per_worker: the number of GPUs of each worker, 1 by default. Needs `use_gpu`.
      use_current_placement_group: whether workers are placed in the placement group in which the caller runs, if there is
        one.
      min_workers: the minimum number of workers. Makes the job elastic: workers are started as the cluster has room.
      max_workers: the maximum number of workers of an elastic job; None: as many as there is room for.
      reset_limit: how many changes of its workers end an elastic job.
      cooldown_range: how long a node gets no new worker after one has failed there: the times in seconds at first, and at
        most.
      elastic_timeout: the time in seconds for `min_workers` to be available, at first and after a change.
      override_discovery: whether the nodes come from Ray. If not, they come from ``settings.discovery``, an object with
        ``find_available_hosts_and_slots()``.

    Raises:
      TypeError, ValueError: arguments are invalid or contradict each other.
    """

    @classmethod
    def create_settings(
        cls,
        timeout_s: float = 30,
        ssh_identity_file: Optional[str] = None,
        ssh_str: Optional[str] = None,
        placement_group_timeout_s: float = 100,
        nics: Networks = None,
    ) -> MiniSettings:
        """Returns the settings of an executor; see :class:`MiniSettings`. There is no ssh.

        Args:
          timeout_s: the time in seconds for the workers to join.
          ssh_identity_file: accepted for compatibility.
          ssh_str: not used, and not written to `ssh_identity_file`.
          placement_group_timeout_s: the time in seconds for the cluster to have room.
          nics: the names of network interfaces, or networks, that workers may use; None: the way to the driver.
        """
        return MiniSettings(
            ssh_identity_file=ssh_identity_file,
            timeout_s=timeout_s,
            placement_group_timeout_s=placement_group_timeout_s,
            nics=nics,
        )

    def __init__(
        self,
        settings: Any,
        num_workers: Optional[int] = None,
        num_hosts: Optional[int] = None,
        num_workers_per_host: Optional[int] = 1,
        cpus_per_worker: float = 1,
        use_gpu: bool = False,
        gpus_per_worker: Optional[float] = None,
        use_current_placement_group: bool = True,
        min_workers: Optional[int] = None,
        max_workers: Optional[int] = None,
        reset_limit: Optional[int] = None,
        cooldown_range: Optional[Sequence[int]] = None,
        elastic_timeout: float = 600,
        override_discovery: bool = True,
    ) -> None:
        if not isinstance(settings, MiniSettings):
            raise TypeError(f"settings is {settings!r}: RayExecutor.create_settings() makes them")
        check_whole_numbers(num_workers=num_workers, num_hosts=num_hosts, num_workers_per_host=num_workers_per_host)
        check_whole_numbers(min_workers=min_workers, max_workers=max_workers)
        check_counts(0, reset_limit=reset_limit)
        check_seconds(elastic_timeout=elastic_timeout)
        check_flags(use_current_placement_group=use_current_placement_group, override_discovery=override_discovery)
        if max_workers and (not min_workers or min_workers <= 0):
            raise ValueError(
                f"max_workers={max_workers} makes the job elastic, which needs a min_workers above 0, not {min_workers}"
            )
        if min_workers and (num_workers or num_hosts):
            raise ValueError(
                f"min_workers makes a job elastic, and {'num_workers' if num_workers else 'num_hosts'} makes it static: "
                "give one of the two"
            )
        resources: dict[str, Any] = dict(
            cpus_per_worker=cpus_per_worker, use_gpu=use_gpu, gpus_per_worker=gpus_per_worker
        )
        self.params: Any
        if min_workers is not None:
            self.params = ElasticParams(
                min_workers=min_workers,
                max_workers=max_workers,
                reset_limit=reset_limit,
                cooldown_range=cooldown_range,
                elastic_timeout=elastic_timeout,
                override_discovery=override_discovery,
                **resources,
            )
        else:
            self.params = StaticParams(
                num_workers=num_workers,
                num_hosts=num_hosts,
                num_workers_per_host=num_workers_per_host,
                use_current_placement_group=use_current_placement_group,
                **resources,
            )
        self.settings = settings
        self.settings.elastic = min_workers is not None
        self.adapter: Any = None
        self._is_remote = False

    def start(
        self,
        executable_cls: Optional[type] = None,
        executable_args: Optional[Sequence[Any]] = None,
        executable_kwargs: Optional[dict[str, Any]] = None,
        extra_env_vars: Optional[dict[str, Any]] = None,
    ) -> None:
        """Starts the workers. The workers of an elastic job are started by :meth:`run`.

        Args:
          executable_cls, executable_args, executable_kwargs: each worker creates an object of this class, with these arguments,
            and keeps it. The class may call ``hvd.init()``.
          extra_env_vars: variables for the workers.

        Raises:
          TimeoutError: the cluster has no room for them; the text says what there is and what was requested.
          RuntimeError: the workers could not join the job.
          Exception: whatever the class raises.
        """
        self.settings.check()
        if executable_cls is not None:
            check_function(executable_cls, "executable_cls")
        check_arguments(executable_args, executable_kwargs, "executable_")
        variables = variables_of(extra_env_vars, "extra_env_vars")
        executable = Executable(executable_cls, tuple(executable_args or ()), executable_kwargs)
        self._make_adapter()
        try:
            self._call("start", executable, variables)
        except BaseException:
            self.shutdown()
            raise

    def execute(self, fn: Callable[[Any], Any], callbacks: Callbacks = None) -> list[Any]:
        """Calls ``fn(executable)`` in all workers.

        Args:
          fn: the function of the object that :meth:`start` has created.
          callbacks: as for :meth:`run`.

        Returns:
          The results, in rank order.

        Raises:
          Exception: as for :meth:`run`.
        """
        check_function(fn)
        check_callbacks(callbacks)
        return list(self._call("execute", fn, callbacks))

    def run(
        self,
        fn: Callable[..., Any],
        args: Optional[Sequence[Any]] = None,
        kwargs: Optional[dict[str, Any]] = None,
        callbacks: Callbacks = None,
    ) -> list[Any]:
        """Calls ``fn(*args, **kwargs)`` in all workers.

        Args:
          fn: the function.
          args: its positional arguments.
          kwargs: its keyword arguments.
          callbacks: functions that are called with each value that a worker logs with ``horovod.ray.ray_logger.log``. They run
            where the executor is; with Ray Client that is the cluster.

        Returns:
          The results, in rank order; for an elastic job those of the workers that exist at the end.

        Raises:
          RuntimeError: a worker died; the text has the job's verdict. If a job of fixed size had to be ended for it, call
            :meth:`shutdown` and :meth:`start`.
          Exception: the exception of the worker that failed first.
        """
        check_call(fn, args, kwargs)
        check_callbacks(callbacks)
        return list(self._call("run", fn, args, kwargs, callbacks))

    def run_remote(
        self, fn: Callable[..., Any], args: Optional[Sequence[Any]] = None, kwargs: Optional[dict[str, Any]] = None
    ) -> list[Any]:
        """Does what :meth:`run` does, without waiting.

        Args:
          fn, args, kwargs: as for :meth:`run`.

        Returns:
          The references of the results.

        Raises:
          NotImplementedError: the job is elastic, so its workers may change.
        """
        check_call(fn, args, kwargs)
        return list(self._call("run_remote", fn, args, kwargs))

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        """Calls ``fn(executable)`` in the worker of rank 0 and returns its result.

        Args:
          fn: the function of the object that :meth:`start` has created.

        Raises:
          NotImplementedError: the job is elastic.
        """
        check_function(fn)
        return self._call("execute_single", fn)

    def shutdown(self) -> None:
        """Ends the workers and the job. Does nothing if there are none."""
        if self.adapter is None:
            return
        self._call("shutdown")
        if self._is_remote:
            ray.kill(self.adapter)
        self.adapter = None

    def _make_adapter(self) -> None:
        if self.adapter is not None:
            raise RuntimeError("The executor has been started already; shutdown() ends it.")
        adapter: Any = ElasticAdapter if self.settings.elastic else StaticAdapter
        self._is_remote = ray.util.client.ray.is_connected()
        if self._is_remote:
            # The daemon has to be where workers reach it.
            self.adapter = ray.remote(adapter).options(num_cpus=0).remote(self.settings, self.params)
        else:
            self.adapter = adapter(self.settings, self.params)

    def _call(self, method: str, *args: Any) -> Any:
        if self.adapter is None:
            raise RuntimeError("The executor has not been started; start() does that.")
        function = getattr(self.adapter, method)
        if not self._is_remote:
            return function(*args)
        try:
            return ray.get(function.remote(*args))
        except ray.exceptions.RayTaskError as error:
            raise (getattr(error, "cause", None) or error) from error  # the adapter's exception


def __getattr__(name: str) -> Any:
    if (
        name == "Coordinator"
    ):  # what `ray.train.horovod` of Ray imports, which needs more of Horovod's former parts for Ray
        raise ImportError(
            "ray.train.horovod is made for Horovod 0.28 and older: write from horovod.ray.train import HorovodConfig, HorovodTrainer"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
