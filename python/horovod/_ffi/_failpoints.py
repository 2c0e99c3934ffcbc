"""Failpoints: places where tests let a worker crash, pause or fail. ``base/failpoint`` says how they are switched on."""

from typing import Optional

from horovod._ffi._library import check, last_error, library

# Once, for the whole process: without them a pass costs one look at this.
_armed = bool(library.hvd_arm_failpoints())


def failpoint(name: str, error: Optional[type[Exception]] = None) -> None:
    """Takes the action of a failpoint, if it is on. The name is in the list of ``base/failpoint/points.h``.

    Args:
      name: the point's name.
      error: the kind of the place's own errors, if that is not HorovodInternalError.
    """
    if not _armed:
        return
    code = library.hvd_pass_failpoint(name.encode())
    if code != 0 and error is not None:
        raise error(last_error())
    check(code)
