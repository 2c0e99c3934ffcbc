"""The exceptions of this package, and the mapping from the runtime's status codes to them."""

import re
from types import TracebackType
from typing import Optional

# The status codes of hvd_c_api.h that this package distinguishes.
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
DATA_LOSS = 15
RELEASED = 100
STILL_RUNNING = 101

# Consequences of the end of another rank, or of the link to it.
_BROKEN_BY_PEER = (ABORTED, UNAVAILABLE, DATA_LOSS)

NOT_INITIALIZED = "Horovod has not been initialized: call hvd.init() first"
_SHUT_DOWN = "Horovod has been shut down"


class HorovodInternalError(RuntimeError):
    """A collective failed.

    The world is broken, unless this is a :class:`HorovodRequestError`. ``hvd.elastic.run`` then restores the last commit and
    continues in the next world.

    Args:
      args: the message.
      code: the runtime's status code, or None.

    Attributes:
      code: the runtime's status code, or None.

    Example:
      >>> from horovod.common.exceptions import HorovodInternalError
      >>> HorovodInternalError("the world is broken").code is None
      True
    """

    _lost_world = False  # it is the loss of a world that this process had entered, while it prepared to train there

    def __init__(self, *args: object, code: Optional[int] = None) -> None:
        super().__init__(*args)
        self.code = code

    @property
    def caused_by_peer(self) -> bool:
        """Whether the error is only the consequence of the end of another rank, or of the link to it."""
        return self.code in _BROKEN_BY_PEER


class HorovodRequestError(HorovodInternalError):
    """The ranks' requests do not match, or are not supported. It is raised on all ranks, and the world stays usable.

    A second attempt would fail in the same way, so ``hvd.elastic.run`` does not retry.
    """


class HostsUpdatedInterrupt(RuntimeError):
    """The world is about to change. ``hvd.elastic.run`` catches it and joins the next world.

    Args:
      skip_sync: whether the state is the same on all ranks, so that only new members need it.

    Attributes:
      skip_sync: the argument.
    """

    _committed: object = None  # the state of which a commit has raised this

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("The hosts of this job have changed.")
        self.skip_sync = skip_sync


class WorkerReleased(SystemExit):
    """The job has released this process, e.g. because its host leaves the job. This is not an error.

    As a SystemExit, it ends the process with code 0 and without output if it is not caught.

    Args:
      reason: why, in one line.

    Attributes:
      reason: the argument.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(0)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class StateCorrupted(SystemExit):
    """The state of this process differs from that of the other ranks, or the job ends because of that. One line has said so.

    As a SystemExit, it ends the process with code 1 and without output if it is not caught.

    Args:
      reason: which ranks differ, in one line.

    Attributes:
      reason: the argument.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(1)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class HorovodVersionMismatchError(ImportError):
    """The installed version of a framework is not the expected one.

    Args:
      name: the framework's name.
      version: the expected version.
      installed_version: the installed version.

    Attributes:
      name, version, installed_version: the arguments.

    Example:
      >>> from horovod.common.exceptions import HorovodVersionMismatchError
      >>> print(HorovodVersionMismatchError("torch", "2.1", "2.0"))
      torch 2.1 was expected, but 2.0 is installed
    """

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(f"{name} {version} was expected, but {installed_version} is installed")
        self.name = name
        self.version = version
        self.installed_version = installed_version


def error_of_status(code: int, message: str) -> BaseException:
    """Returns the exception for a failed call of the runtime. For a failed wait see :func:`error_of_wait`.

    Args:
      code: the runtime's status code.
      message: the runtime's message.
    """
    if code == RELEASED:
        return WorkerReleased(message)
    if code == INVALID_ARGUMENT:
        return ValueError(message)
    if code == ALREADY_EXISTS:
        return ValueError(
            f"{message}: wait for that operation, or give each its own name (gradients of "
            'two optimizers: by named_parameters, for example model.named_parameters("first"))'
        )
    return _internal_error(code, message)


def error_of_wait(code: int, message: str) -> BaseException:
    """Returns the exception for an operation that failed after it was submitted. An invalid argument found at that point is a
    mismatch between ranks, so it becomes a :class:`HorovodRequestError`.

    Args:
      code: the runtime's status code.
      message: the runtime's message.
    """
    if code == INVALID_ARGUMENT:
        return HorovodRequestError(message, code=code)
    return error_of_status(code, message)


def _internal_error(code: int, message: str) -> HorovodInternalError:
    if code == UNIMPLEMENTED:
        return HorovodRequestError(message, code=code)
    if code in _BROKEN_BY_PEER and not message.startswith(_SHUT_DOWN):
        message = f"{_SHUT_DOWN}. {message}"
    return HorovodInternalError(message, code=code)


# Frameworks whose libraries run collectives report failures by their own exceptions.

# ErrorText of frameworks/runtime_library.h.
_REPORT = re.compile(r"Horovod(?:Internal|Request)Error: (.*?) \(code (\d+)\)", re.DOTALL)
_reporting: list[type[BaseException]] = []


def reported_by(*kinds: type[BaseException]) -> None:
    """Registers exception types that a framework raises for failed operations, with the runtime's report in their texts.

    Args:
      kinds: the exception types.
    """
    _reporting.extend(kinds)


def translated(error: BaseException) -> Optional[BaseException]:
    """Returns the exception of this module that `error` is, or that it stands for.

    Args:
      error: any exception; of those registered with :func:`reported_by`, the text is searched for the runtime's report.

    Returns:
      The exception, or None if `error` is unrelated to Horovod.
    """
    if isinstance(error, HorovodInternalError):
        return error
    return reported(str(error)) if isinstance(error, tuple(_reporting)) else None


def reported(text: str) -> Optional[BaseException]:
    """Returns the exception that the runtime's report in `text` describes; None if `text` has no report.

    Args:
      text: the text of a framework's exception.
    """
    found = _REPORT.search(text)
    return error_of_wait(int(found[2]), found[1]) if found else None


class translating:
    """A context that replaces frameworks' exceptions for failed operations by the exceptions that they stand for."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        own = None if error is None else translated(error)
        if own is not None and own is not error:
            raise own from error
