"""Files, folders and links of other users in places where all users may write, such as /tmp: they are not used, as with the kernel's
fs.protected_symlinks. A checkpoint contains pickles, so its writer runs code in the process that reads it; and a link could name a
checkpoint of another job.
"""

import errno
import os
import stat
from typing import Optional

_MOST_LINKS = 40  # as the kernel's


class Stranger(PermissionError):
    """Something belongs to another user, in a folder that all users may write to; the message says what."""


def opened(path: str, flags: int, mode: int = 0o600) -> int:
    """Opens a file and returns its descriptor. Links are followed if they are not a stranger's.

    Args:
      path: the path of the file.
      flags, mode: those of ``os.open``.

    Raises:
      Stranger: the file, or a link to it, is a stranger's.
      OSError: it can't be opened.
    """
    for _ in range(_MOST_LINKS):
        try:
            descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            path = _target(path)
            continue
        problem = stranger(path, os.fstat(descriptor).st_uid)
        if problem is None:
            return descriptor
        os.close(descriptor)
        raise Stranger(problem)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _target(path: str) -> str:
    """Returns the path that a link names. Raises as :func:`opened`."""
    link = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)  # can't be exchanged before it is read
    try:
        problem = stranger(path, os.fstat(link).st_uid)
        if problem is not None:
            raise Stranger(f"it is a link; {problem}")
        return os.path.join(os.path.dirname(path), os.readlink("", dir_fd=link))
    finally:
        os.close(link)


def stranger(path: str, owner: Optional[int] = None) -> Optional[str]:
    """Returns what is wrong with the owner of `path`, in words; None: nothing, or it can't be found out.

    Args:
      path: the path of a file or folder.
      owner: its owner's user id; None: that of what is at `path`, without following a link.
    """
    try:
        if owner is None:
            owner = os.lstat(path).st_uid
        folder = os.stat(os.path.dirname(os.path.abspath(path)))
    except OSError:
        return None
    if not folder.st_mode & stat.S_IWOTH or owner in (os.geteuid(), folder.st_uid):
        return None
    return f"it belongs to user {owner}, in a folder that all users may write to"
