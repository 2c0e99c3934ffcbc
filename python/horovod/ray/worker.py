"""The actor that is a worker."""

import os
import socket
import threading
from typing import Any, Callable, NamedTuple, Optional

import ray

from horovod.common.exceptions import WorkerReleased
from horovod.ray import ray_logger
from horovod.ray.failures import mark_consequence
from horovod.ray.parcel import Executable, Parcel
from horovod.runner._adoption import Adoption
from horovod.runner._handover import pickled
from horovod.runner._job import JoinInfo

_END_SECONDS = 60.0  # for a job whose workers have all left


class Membership(NamedTuple):
    """How an actor takes part in a job. It contains a secret, so it is passed only as an argument of a method."""

    info: JoinInfo
    host: str  # HOST/NUMBER, unique in the job
    machine: Optional[str]
    interfaces: Optional[list[str]]
    timeout: Optional[float]  # seconds until the job has started
    environment: dict[str, str]


class Ended(NamedTuple):
    """How a worker of an elastic job has ended."""

    rank: int
    size: int  # of its last world; 0: it is not known any more
    value: Any


class BaseHorovodWorker:
    """An actor whose process is a worker of a job. One executor calls its methods."""

    executable: Any = None

    def __init__(self) -> None:
        self._adoption: Optional[Adoption] = None
        self._busy = threading.RLock()  # while a function of the user runs

    def hostname(self) -> str:
        """Returns the name of the worker's host."""
        return socket.gethostname()

    def node_id(self) -> str:
        """Returns the id of the worker's node, in hexadecimal digits."""
        node: str = ray.get_runtime_context().get_node_id()
        return node

    def get_gpu_ids(self) -> list[Any]:
        """Returns the GPUs that Ray assigned to the worker."""
        return list(ray.get_gpu_ids())

    def update_env_vars(self, env_vars: dict[str, Any]) -> None:
        """Sets environment variables of the worker's process.

        Args:
          env_vars: the variables by name.
        """
        os.environ.update({name: str(value) for name, value in env_vars.items()})

    def env_vars(self) -> dict[str, str]:
        """Returns the environment variables of the worker's process."""
        return dict(os.environ)

    def set_queue(self, queue: Any) -> None:
        """Sets the queue into which ``ray_logger.log`` puts values.

        Args:
          queue: the queue; None: values are dropped.
        """
        ray_logger.configure(queue)

    def start_executable(
        self,
        executable_cls: Optional[type] = None,
        executable_args: Any = None,
        executable_kwargs: Optional[dict[str, Any]] = None,
    ) -> None:
        """Creates the object that functions get.

        Args:
          executable_cls: its class; None: the object is None.
          executable_args: positional arguments of the class.
          executable_kwargs: keyword arguments of the class.
        """
        self.executable = Executable(executable_cls, tuple(executable_args or ()), executable_kwargs).make()

    def make_executable(self, parcel: Parcel) -> None:
        """Creates the object that functions get.

        Args:
          parcel: a parcel with an :class:`Executable`.
        """
        self.executable = parcel.open().make()

    def execute_parcel(self, parcel: Parcel) -> Any:
        """Calls a function as :meth:`execute` does.

        Args:
          parcel: a parcel with the function.
        """
        return self.execute(parcel.open())

    def execute(self, func: Callable[[Any], Any]) -> Any:
        """Calls ``func(executable)`` and returns the result.

        Args:
          func: the function.
        """
        with self._busy:
            try:
                return func(self.executable)
            except WorkerReleased:
                raise
            except SystemExit as error:  # it would end the actor
                raise RuntimeError(f"the function called sys.exit({error.code!r}); it has to return") from error
            except Exception as error:
                mark_consequence(error)
                raise

    def join(self, membership: Membership) -> None:
        """Becomes a worker of a job.

        Args:
          membership: how to take part.

        Raises:
          RuntimeError, TimeoutError: the job does not start.
        """
        self.update_env_vars(membership.environment)
        self._adoption = Adoption(
            membership.info.address,
            membership.info.credentials,
            host=membership.host,
            machine=membership.machine,
            on_stop=self._stop,
            network_interfaces=membership.interfaces,
        )
        self._adoption.wait_for_start(membership.timeout)
        # The participants of a job need different names, and functions the one of their host.
        os.environ["HOROVOD_HOSTNAME"] = membership.host.rpartition("/")[0]

    def leave(self) -> None:
        """Leaves the job cleanly."""
        if self._adoption is not None:
            self._adoption.exit(0, timeout=_END_SECONDS)

    def take_part(self, membership: Membership, executable: Parcel, func: Parcel) -> Optional[Ended]:
        """Joins an elastic job, runs a function, and leaves the job.

        Args:
          membership: how to take part.
          executable: a parcel with an :class:`Executable`.
          func: a parcel with the function.

        Returns:
          How it has ended; None: the job has released the worker.

        Raises:
          Exception: whatever the function raises.
        """
        self.update_env_vars(membership.environment)  # modules that are imported next may read them
        opened, function = executable.open(), func.open()
        self.join(membership)
        assert self._adoption is not None
        with self._busy:
            try:
                self.executable = opened.make()
                result = self.execute(function)
                pickled(result)  # a result that can't be pickled is found while the failure can still be reported
            except WorkerReleased:
                self._adoption.exit(0)
                return None
            except Exception as error:
                self._adoption.exit(1, error=error)
                raise
            ended = Ended(*_place(), result)
            self._adoption.exit(0)
        return ended

    def _stop(self, seconds: float) -> None:
        # What ends the job ends the collectives of a function that still runs, and so that function. One that takes
        # longer is killed by the agent, with this process.
        if self._adoption is not None and self._busy.acquire(timeout=seconds):
            try:
                self._adoption.exit(1)
            finally:
                self._busy.release()


def _place() -> tuple[int, int]:
    from horovod.common import basics

    if basics.is_initialized():
        return basics.rank(), basics.size()
    return int(os.environ.get("HOROVOD_RANK", "0")), 0
