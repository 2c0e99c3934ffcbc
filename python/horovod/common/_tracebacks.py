"""Tracebacks with the script's frames only, without those of this package."""

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
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
    for other in (error.__cause__, error.__context__, *(getattr(error, "exceptions", None) or ())):
        yield from _linked(other)


def folded(error: BaseException) -> str:
    """Returns the traceback without this package's frames and those between them, with the number of frames left out."""
    shown = traceback.TracebackException.from_exception(error)
    if _shows_all():
        return "".join(shown.format())
    left_out = 0
    for each in _linked(shown):
        users = _users(each.stack)
        left_out += len(each.stack) - len(users)
        each.stack[:] = users
    text = "".join(shown.format())
    if left_out == 0:
        return text
    frames = "1 frame" if left_out == 1 else f"{left_out} frames"
    return _LEFT_OUT.format(frames, "it" if left_out == 1 else "them") + text


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
