"""The common base of the adapters of executors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from horovod.ray.parcel import Executable
from horovod.runner._engine_options import check_amounts, check_flags, check_function, check_variables, is_number

Callbacks = Optional[Sequence[Callable[[Any], Any]]]


@dataclass
class BaseParams:
    """The resources of each worker. Raises ValueError for resources that contradict each other."""

    cpus_per_worker: float = 1
    use_gpu: bool = False
    gpus_per_worker: Optional[float] = None

    def __post_init__(self) -> None:
        check_amounts(cpus_per_worker=self.cpus_per_worker)
        check_gpus(self.use_gpu, self.gpus_per_worker, "gpus_per_worker")
        self.gpus_per_worker = self.gpus_per_worker or int(self.use_gpu)

    def resources(self) -> dict[str, float]:
        """Returns the resources of one worker, as Ray names them."""
        return resources_of(self.cpus_per_worker, self.gpus_per_worker or 0)


def resources_of(cpus: float, gpus: float) -> dict[str, float]:
    """Returns a bundle of a placement group; no bundle may be empty."""
    resources = {"CPU": cpus, "GPU": gpus}
    return {name: amount for name, amount in resources.items() if amount} or {"CPU": 0.001}


def check_gpus(use_gpu: bool, number: Optional[float], name: str) -> None:
    """Raises TypeError or ValueError for an invalid number of GPUs, with the argument's `name`."""
    check_flags(use_gpu=use_gpu)
    if number is not None and not is_number(number):
        raise TypeError(f"{name} must be a number: Got {number!r}")
    if number and not use_gpu:
        raise ValueError(f"{name}={number} needs use_gpu=True")
    if use_gpu and number is not None and number < 1:
        raise ValueError(f"{name} must be >= 1: Got {number}.")


def variables_of(variables: Any, name: str) -> dict[str, str]:
    """Returns the environment in the argument of that name, with values as text. Raises TypeError or ValueError for an invalid one."""
    if not isinstance(variables or {}, Mapping):
        raise TypeError(f"{name} must be a dict: Got {variables!r}")
    texts = {variable: str(value) for variable, value in (variables or {}).items()}
    check_variables(name, texts)
    return texts


def check_callbacks(callbacks: Any) -> None:
    """Raises TypeError for a value that is not a list of functions."""
    if callbacks is None:
        return
    if not isinstance(callbacks, Sequence):
        raise TypeError(f"callbacks must be a list of functions: Got {callbacks!r}")
    for callback in callbacks:
        check_function(callback, "each of callbacks")


class Adapter:
    """The part of an executor that runs functions on workers. Only one thread may use it. Its arguments can be pickled, because with
    Ray Client it is an actor of the cluster.
    """

    def start(self, executable: Executable, environment: dict[str, str]) -> None:
        """Starts as :meth:`horovod.ray.RayExecutor.start` does; the other methods correspond to RayExecutor's, too."""
        raise NotImplementedError

    def execute(self, fn: Callable[[Any], Any], callbacks: Callbacks = None) -> list[Any]:
        raise NotImplementedError

    def run(
        self,
        fn: Callable[..., Any],
        args: Optional[Sequence[Any]] = None,
        kwargs: Optional[dict[str, Any]] = None,
        callbacks: Callbacks = None,
    ) -> list[Any]:
        return self.execute(bound(fn, args, kwargs), callbacks)

    def run_remote(
        self, fn: Callable[..., Any], args: Optional[Sequence[Any]] = None, kwargs: Optional[dict[str, Any]] = None
    ) -> list[Any]:
        raise NotImplementedError

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        raise NotImplementedError

    def shutdown(self) -> None:
        raise NotImplementedError


def bound(
    fn: Callable[..., Any], args: Optional[Sequence[Any]], kwargs: Optional[dict[str, Any]]
) -> Callable[[Any], Any]:
    """Returns a function for :meth:`Adapter.execute` that calls ``fn(*args, **kwargs)``."""
    return lambda _: fn(*(args or ()), **(kwargs or {}))
