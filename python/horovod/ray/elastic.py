"""Horovod's older interface for elastic jobs on Ray."""

import warnings
from collections.abc import Sequence
from typing import Any, Callable, Optional

from horovod.ray import discovery
from horovod.ray.adapter import Callbacks, check_gpus, variables_of
from horovod.ray.runner import RayExecutor
from horovod.ray.settings import ElasticSettings, Networks
from horovod.runner._engine_options import check_amounts, check_function

_NEWER_NAMES = {"cpus_per_slot": "cpus_per_worker", "gpus_per_slot": "gpus_per_worker"}


class _OlderNames:
    """A discovery that takes `cpus_per_slot` and `gpus_per_slot`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{_NEWER_NAMES.get(name, name): value for name, value in kwargs.items()})


class RayHostDiscovery(_OlderNames, discovery.RayHostDiscovery):
    """:class:`horovod.ray.discovery.RayHostDiscovery` with older names of its arguments."""


class TestDiscovery(_OlderNames, discovery.ChangingDiscovery):
    """:class:`horovod.ray.discovery.ChangingDiscovery` with older names of its arguments."""


class ElasticRayExecutor:
    """Runs an elastic job on a Ray cluster. :class:`RayExecutor` with `min_workers` does the same.

    Args:
      settings: what :meth:`create_settings` returned.
      use_gpu: whether the workers use GPUs.
      cpus_per_slot: the number of CPUs of each worker.
      gpus_per_slot: the number of GPUs of each worker.
      env_vars: variables for the workers.
      override_discovery: whether the nodes come from Ray. If not, they come from ``settings.discovery``.

    Raises:
      TypeError, ValueError: arguments are invalid or contradict each other.
    """

    @staticmethod
    def create_settings(
        min_num_proc: int = 1,
        max_num_proc: Optional[int] = None,
        reset_limit: Optional[int] = None,
        elastic_timeout: float = 600,
        timeout_s: float = 30,
        ssh_identity_file: Optional[str] = None,
        nics: Networks = None,
        min_np: Optional[int] = None,
        max_np: Optional[int] = None,
        **kwargs: Any,
    ) -> ElasticSettings:
        """Returns the settings of an executor.

        Args:
          min_num_proc: the minimum number of workers.
          max_num_proc: the maximum number of workers; None: as many as there is room for.
          reset_limit: how many changes of its workers end the job.
          elastic_timeout: the time in seconds for `min_num_proc` workers to be available, at first and after a change.
          timeout_s: the time in seconds for the workers to join.
          ssh_identity_file: accepted for compatibility; there is no ssh.
          nics: the names of network interfaces, or networks, that workers may use; None: the way to the driver.
          min_np, max_np: older names of `min_num_proc` and `max_num_proc`.
          kwargs: further attributes of :class:`ElasticSettings`, such as ``verbose``.
        """
        for old in [name for name, value in (("min_np", min_np), ("max_np", max_np)) if value is not None]:
            warnings.warn(f"{old} is deprecated, use {old[:3]}_num_proc instead", DeprecationWarning, stacklevel=2)
        return ElasticSettings(
            min_num_proc=min_num_proc if min_np is None else min_np,
            max_num_proc=max_num_proc if max_np is None else max_np,
            reset_limit=reset_limit,
            elastic_timeout=elastic_timeout,
            timeout_s=timeout_s,
            ssh_identity_file=ssh_identity_file,
            nics=nics,
            **kwargs,
        )

    def __init__(
        self,
        settings: ElasticSettings,
        use_gpu: bool = False,
        cpus_per_slot: float = 1,
        gpus_per_slot: Optional[float] = None,
        env_vars: Optional[dict[str, Any]] = None,
        override_discovery: bool = True,
    ) -> None:
        if not isinstance(settings, ElasticSettings):
            raise TypeError(f"settings is {settings!r}: ElasticRayExecutor.create_settings() makes them")
        check_gpus(use_gpu, gpus_per_slot, "gpus_per_slot")
        check_amounts(cpus_per_slot=cpus_per_slot)
        self.settings = settings
        self.env_vars = variables_of(env_vars, "env_vars")
        self._executor = RayExecutor(
            settings,
            min_workers=settings.min_num_proc,
            max_workers=settings.max_num_proc,
            reset_limit=settings.reset_limit,
            cooldown_range=settings.cooldown_range,
            elastic_timeout=settings.elastic_timeout,
            cpus_per_worker=cpus_per_slot,
            use_gpu=use_gpu,
            gpus_per_worker=gpus_per_slot,
            override_discovery=override_discovery,
        )

    def start(self) -> None:
        """Prepares for :meth:`run`."""
        self._executor.start(extra_env_vars=self.env_vars)

    def run(self, worker_fn: Callable[[], Any], callbacks: Callbacks = None) -> Sequence[Any]:
        """Calls `worker_fn()` in each worker, as :meth:`RayExecutor.run` does.

        Args:
          worker_fn: the function.
          callbacks: as for :meth:`RayExecutor.run`.

        Returns:
          The results of the workers that exist at the end, in rank order.
        """
        check_function(worker_fn, "worker_fn")
        return self._executor.run(worker_fn, callbacks=callbacks)
