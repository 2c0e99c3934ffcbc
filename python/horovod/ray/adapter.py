"""What executors of both kinds have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from horovod.ray.parcel import Executable
from horovod.runner._engine_options import check_amounts, check_flags, check_function, check_variables, is_number

Callbacks = Optional[Sequence[Callable[[Any], Any]]]


@dataclass
class BaseParams:
    """The resources of each worker. Raises ValueError for those that contradict each other."""

    cpus_per_worker: float = 1
    use_gpu: bool = False
    gpus_per_worker: Optional[float] = None

    def __post_init__(self) -> None:
        check_amounts(cpus_per_worker=self.cpus_per_worker)
        check_gpus(self.use_gpu, self.gpus_per_worker, "gpus_per_worker")
        self.gpus_per_worker = self.gpus_per_worker or int(self.use_gpu)

    def resources(self) -> dict[str, float]:
        """Those of one worker, as Ray names them."""
        return resources_of(self.cpus_per_worker, self.gpus_per_worker or 0)


def resources_of(cpus: float, gpus: float) -> dict[str, float]:
    """A bundle of a placement group; none may be empty."""
    resources = {"CPU": cpus, "GPU": gpus}
    return {name: amount for name, amount in resources.items() if amount} or {"CPU": 0.001}


def check_gpus(use_gpu: bool, number: Optional[float], name: str) -> None:
    """Raises TypeError or ValueError for a number of GPUs (its argument's `name`) that can't be."""
    check_flags(use_gpu=use_gpu)
    if number is not None and not is_number(number):
        raise TypeError(f"{name} must be a number: Got {number!r}")
    if number and not use_gpu:
        raise ValueError(f"{name} is set, but use_gpu is False. use_gpu must be True if {name} is set.")
    if use_gpu and number is not None and number < 1:
        raise ValueError(f"{name} must be >= 1: Got {number}.")


def variables_of(variables: Any, name: str) -> dict[str, str]:
    """The environment in the argument of that name, as text. Raises TypeError or ValueError for what is none."""
    if not isinstance(variables or {}, Mapping):
        raise TypeError(f"{name} must be a dict: Got {variables!r}")
    texts = {variable: str(value) for variable, value in (variables or {}).items()}
    check_variables(name, texts)
    return texts


def check_callbacks(callbacks: Any) -> None:
    """Raises TypeError for what is no list of functions."""
    if callbacks is None:
        return
    if not isinstance(callbacks, Sequence):
        raise TypeError(f"callbacks must be a list of functions: Got {callbacks!r}")
    for callback in callbacks:
        check_function(callback, "each of callbacks")


class Adapter:
    """An executor's way to run functions on workers. For one thread; its arguments can be pickled, for with Ray Client it is an
    actor of the cluster."""

    def start(self, executable: Executable, environment: dict[str, str]) -> None:
        """As :meth:`horovod.ray.RayExecutor.start`, and the others are as theirs."""
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
    """A function for :meth:`Adapter.execute` that calls ``fn(*args, **kwargs)``."""
    return lambda _: fn(*(args or ()), **(kwargs or {}))
