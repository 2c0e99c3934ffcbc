"""Exceptions, and which status code of the runtime becomes which."""

from typing import Callable, Optional

# Status codes of hvd_c_api.h that this package tells apart.
CANCELLED = 1
INVALID_ARGUMENT = 3
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
UNIMPLEMENTED = 12
UNAVAILABLE = 14
RELEASED = 100
STILL_RUNNING = 101

NOT_INITIALIZED = "Horovod has not been initialized; use hvd.init()."
_SHUT_DOWN = (
    "Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt "
    "to use a collective after one of the ranks finished execution."
)
_DUPLICATE_NAME = (
    "Requested to allreduce, allgather, or broadcast a tensor with the same name as another tensor "
    "that is currently being processed. If you want to request another tensor, use a different "
    "tensor name."
)


class HorovodInternalError(RuntimeError):
    """A collective failed. `code` is the runtime's status code, or None.

    The world is broken unless this is a :class:`HorovodRequestError`; ``hvd.elastic.run`` then
    starts again from the last commit.
    """

    def __init__(self, *args: object, code: Optional[int] = None) -> None:
        super().__init__(*args)
        self.code = code

    @property
    def caused_by_peer(self) -> bool:
        """Whether the error is only the consequence of another rank's end."""
        return self.code in (ABORTED, UNAVAILABLE)


class HorovodRequestError(HorovodInternalError):
    """The ranks' requests do not match, or are not supported. Raised on all ranks; the world stays
    usable.

    Trying again would fail again, so ``hvd.elastic.run`` does not.
    """


class HostsUpdatedInterrupt(RuntimeError):
    """The world is about to change; ``hvd.elastic.run`` joins the next one.

    `skip_sync` is kept for scripts that read it. Whether states are synchronized after a change is
    decided for all ranks alike.
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("The hosts of this job have changed.")
        self.skip_sync = skip_sync


class WorkerReleased(SystemExit):
    """The job has released this process, e.g. because its host leaves the job.

    It ends the process quietly, with code 0, wherever it is raised; it is no error. `reason` is one
    line.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(0)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class HorovodVersionMismatchError(ImportError):
    """A framework's version is not the one expected."""

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(f"{name} {version} was expected, but {installed_version} is installed")
        self.name = name
        self.version = version
        self.installed_version = installed_version


_translations: list[Callable[[BaseException], Optional[HorovodInternalError]]] = []


def register_translation(function: Callable[[BaseException], Optional[HorovodInternalError]]) -> None:
    """Has `function` asked what the errors of a framework mean in which one of our operations may have
    failed: it returns the error that it was, or None."""
    _translations.append(function)


def translated(error: BaseException) -> Optional[HorovodInternalError]:
    """The error as one of Horovod's: itself, or what it means if a framework has raised it; None for any
    other."""
    if isinstance(error, HorovodInternalError):
        return error
    return next(filter(None, (function(error) for function in _translations)), None)


def error_of_status(code: int, message: str) -> BaseException:
    """The exception for a failed call of the runtime, except for waiting (see
    :func:`error_of_wait`)."""
    if code == RELEASED:
        return WorkerReleased(message)
    if code == INVALID_ARGUMENT:
        return ValueError(message)
    if code == ALREADY_EXISTS:
        return ValueError(_DUPLICATE_NAME + " " + message)
    return _internal_error(code, message)


def error_of_wait(code: int, message: str) -> BaseException:
    """The exception for an operation that failed: a bad argument found so late is a mismatch of
    ranks."""
    if code == INVALID_ARGUMENT:
        return HorovodRequestError(message, code=code)
    return error_of_status(code, message)


def _internal_error(code: int, message: str) -> HorovodInternalError:
    if code == UNIMPLEMENTED:
        return HorovodRequestError(message, code=code)
    if code in (ABORTED, UNAVAILABLE) and not message.startswith("Horovod has been shut down"):
        message = _SHUT_DOWN + " " + message
    return HorovodInternalError(message, code=code)
