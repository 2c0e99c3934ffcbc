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
    """The same as :class:`horovod.ray.discovery.RayHostDiscovery`, with older names of its arguments."""


class TestDiscovery(_OlderNames, discovery.ChangingDiscovery):
    """The same as :class:`horovod.ray.discovery.ChangingDiscovery`, with older names of its arguments."""


class ElasticRayExecutor:
    """Runs an elastic job on a Ray cluster. :class:`RayExecutor` with `min_workers` does the same.

    Args:
      settings: of :meth:`create_settings`.
      use_gpu, cpus_per_slot, gpus_per_slot: each worker's resources.
      env_vars: variables for the workers.
      override_discovery: nodes come from Ray; False: from ``settings.discovery``.

    Raises TypeError or ValueError for arguments that can't be, or contradict each other.
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
        """The settings of an executor; `kwargs` are further ones of :class:`ElasticSettings`, such as ``verbose``.
        `min_np` and `max_np` are older names."""
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
        """Makes ready for :meth:`run`."""
        self._executor.start(extra_env_vars=self.env_vars)

    def run(self, worker_fn: Callable[[], Any], callbacks: Callbacks = None) -> Sequence[Any]:
        """Calls `worker_fn()` in each worker; as :meth:`RayExecutor.run`."""
        check_function(worker_fn, "worker_fn")
        return self._executor.run(worker_fn, callbacks=callbacks)
