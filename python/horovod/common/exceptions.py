"""Exceptions, and which status code of the runtime becomes which."""

import re
from types import TracebackType
from typing import Optional

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


# Frameworks whose libraries run collectives report failed ones by exceptions of their own.

# ErrorText of frameworks/runtime_library.h.
_REPORT = re.compile(r"Horovod(?:Internal|Request)Error: (.*?) \(code (\d+)\)", re.DOTALL)
_reporting: list[type[BaseException]] = []


def reported_by(*kinds: type[BaseException]) -> None:
    """Notes that a framework raises exceptions of these types for failed operations, with the
    runtime's report in their texts."""
    _reporting.extend(kinds)


def translated(error: BaseException) -> Optional[BaseException]:
    """The exception of this module that `error` is, or stands for if a framework has raised it; None
    for any other."""
    if isinstance(error, HorovodInternalError):
        return error
    return reported(str(error)) if isinstance(error, tuple(_reporting)) else None


def reported(text: str) -> Optional[BaseException]:
    """The exception that the runtime's report in `text` stands for; None if there is none in it."""
    found = _REPORT.search(text)
    return error_of_wait(int(found[2]), found[1]) if found else None


class translating:
    """A context that raises what frameworks' exceptions stand for in their place."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        own = None if error is None else translated(error)
        if own is not None and own is not error:
            raise own from error
