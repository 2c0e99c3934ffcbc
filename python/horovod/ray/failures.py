"""The choice of the error that is the cause of the others, among the errors of a job's workers."""

from typing import Callable, NamedTuple

import ray

from horovod.common.exceptions import HorovodInternalError, translated
from horovod.runner._adoption import Refused


class WorkerError(NamedTuple):
    """The error that Ray reported for a worker's function that did not return."""

    worker: str  # who
    error: Exception

    @property
    def order(self) -> int:
        """A rank for sorting: lower values are nearer to the cause. The death of an actor has no stated reason, but is not the
        consequence of another error either.
        """
        if isinstance(self.error, ray.exceptions.RayTaskError):
            return 2 if is_consequence(self.error) else 0
        return 1

    @property
    def is_death(self) -> bool:
        """Whether the worker itself is gone, and so its job; else only its value or exception can't be had."""
        return isinstance(self.error, ray.exceptions.RayActorError)


def raise_cause(errors: list[WorkerError], verdict: Callable[[], str]) -> None:
    """Raises the error that ended the job: a function's exception as it is, or a RuntimeError with the job's `verdict` if a
    worker died. `verdict` is called only then. REQUIRES: there is an error.
    """
    first = min(errors, key=lambda error: error.order)
    if refusal(first.error):
        raise RuntimeError(f"{first.worker}: {refusal(first.error)}") from None
    if first.order == 0:
        raise first.error
    if first.order == 1 and not first.is_death:
        raise RuntimeError(f"what {first.worker} returned or raised can't be unpickled here: {first.error}") from None
    text = first_words(first.error)
    raise RuntimeError(f"{verdict() or 'a worker was lost'}\n{first.worker}: {text}") from first.error


_CONSEQUENCE = "horovod_caused_by_peer"


def mark_consequence(error: Exception) -> None:
    """Records on `error` whether it is only the consequence of another worker's end. The mark is pickled with `error`."""
    known = translated(error)
    if isinstance(known, HorovodInternalError) and known.caused_by_peer:
        setattr(error, _CONSEQUENCE, True)


def is_consequence(error: BaseException) -> bool:
    """Returns whether :func:`mark_consequence` has marked `error`, which a worker raised, as a consequence."""
    cause = getattr(error, "cause", None) or error
    return bool(getattr(cause, _CONSEQUENCE, False))


def refusal(error: BaseException) -> str:
    """Returns why the worker can't take part in the job, now or later; "" if `error` says something else."""
    cause = getattr(error, "cause", None) or error
    return str(cause) if isinstance(cause, Refused) else ""


def first_words(error: Exception) -> str:
    """What `error` says, in one line."""
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip()) or type(error).__name__
