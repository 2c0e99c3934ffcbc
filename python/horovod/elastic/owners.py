"""Files and folders of other users in places where all users may write, such as /tmp: they are not used, as with the kernel's
fs.protected_symlinks. A checkpoint contains pickles, so its writer runs code in the process that reads it.
"""

import os
import stat
from typing import Optional


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
