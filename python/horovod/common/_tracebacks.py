"""Tracebacks with the script's frames only, without those of this package."""

import difflib
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Optional

from horovod.common.exceptions import translated

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Where other packages are, and Python's own modules.
_INSTALLED = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {path + os.sep for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    | {"<frozen "}
)
# First: the last line of a traceback says what has happened, and programs look for it there.
_LEFT_OUT = "({} of Horovod left out; HOROVOD_LOG_LEVEL=debug shows {})\n"


def _shows_all() -> bool:
    return os.environ.get("HOROVOD_LOG_LEVEL", "").lower() in ("debug", "trace")


def _is_own(frame: traceback.FrameSummary) -> bool:
    return os.path.abspath(frame.filename).startswith(_PACKAGE)


def _is_installed(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_INSTALLED)


def _users(frames: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Returns the frames without this package's, and without those of other packages between them, such as torch.compile's."""
    kept: list[traceback.FrameSummary] = []
    between: list[traceback.FrameSummary] = []  # other packages' that a frame of this package has called
    is_below_own = False
    for frame in frames:
        if _is_own(frame):
            is_below_own, between = True, []
        elif is_below_own and _is_installed(frame):
            between.append(frame)
        else:
            kept += [*between, frame]
            is_below_own, between = False, []
    return kept + between


def _linked(error: Optional[traceback.TracebackException]) -> Iterator[traceback.TracebackException]:
    """Returns the exception, its causes, and the members of exception groups."""
    if error is None:
        return
    yield error
    context = None if error.__suppress_context__ else error.__context__  # a suppressed one is not shown
    for other in (error.__cause__, context, *(getattr(error, "exceptions", None) or ())):
        yield from _linked(other)


def folded(error: BaseException) -> str:
    """Returns the traceback without this package's frames and those between them, with the number of frames left out."""
    return _shortened(error) or _whole(error)


def _whole(error: BaseException) -> str:
    return "".join(traceback.TracebackException.from_exception(error).format())


def _meant(error: BaseException) -> str:
    """Returns the question for another name, which the module traceback leaves out before Python 3.12."""
    name, owner = getattr(error, "name", None), getattr(error, "obj", None)
    if sys.version_info >= (3, 12) or not isinstance(error, AttributeError) or name is None or owner is None:
        return ""
    if getattr(error, "__notes__", None):
        return ""  # the text ends with a note
    try:
        close = difflib.get_close_matches(name, dir(owner), 1)
    except Exception:  # a class may have a __dir__ of its own
        return ""
    return f". Did you mean: {close[0]!r}?" if close else ""


def _shortened(error: BaseException) -> str:
    """Returns :func:`folded`; "" if nothing is left out."""
    if _shows_all():
        return ""
    shown = traceback.TracebackException.from_exception(error)
    left_out = 0
    for each in _linked(shown):
        users = _users(each.stack)
        left_out += len(each.stack) - len(users)
        each.stack[:] = users
    if left_out == 0:
        return ""
    text = "".join(shown.format()).rstrip("\n") + _meant(error) + "\n"
    frames = "1 frame" if left_out == 1 else f"{left_out} frames"
    return _LEFT_OUT.format(frames, "it" if left_out == 1 else "them") + text


def show(kind: type[BaseException], value: BaseException, traceback: Optional[TracebackType]) -> None:
    """Prints the folded traceback: an excepthook in place of Python's default."""
    text = "" if value is None or sys.stderr is None else _shortened(value)
    # Before Python 3.12 only its own hook asks "Did you mean". It writes in pieces, between which other ranks may write.
    if value is None or sys.stderr is None or (not text and isinstance(value, (AttributeError, NameError))):
        sys.__excepthook__(kind, value, traceback)
    else:
        print(text or _whole(value), file=sys.stderr, end="")


def fold_from_now_on() -> None:
    """Folds what this process prints before :mod:`horovod.common.basics` is imported, such as an import that fails."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = show


def described(error: BaseException) -> str:
    """Returns the exception's class and text. For a framework's exception for a failed operation, it returns those of the
    operation's failure: the framework's text contains the graph.
    """
    own = translated(error) or error
    return f"{type(own).__name__}: {own}"


def in_a_line(error: BaseException) -> str:
    """Returns the exception and the script's innermost line that raised it; the whole traceback if the log level asks for it.

    An exception that another rank has caused was raised there; the line here is only where this rank was then.
    """
    if _shows_all():
        return folded(error).rstrip("\n")
    text = " ".join(described(error).split())
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not _is_own(one)]
    users = [one for one in frames if not _is_installed(one)] or frames
    if not users:
        return text
    was_at = "this rank was at " if getattr(translated(error), "caused_by_peer", False) else ""
    return f"{text} ({was_at}{users[-1].filename}:{users[-1].lineno}, in {users[-1].name})"
