"""URLs of files on this machine: file:///PATH and file://localhost/PATH (RFC 8089)."""

import re
from typing import Optional

_URL = re.compile(r"(?:file|local)://([^/]*)(/.*)?", re.DOTALL)  # "local" is fsspec's second name for it


def path_of(text: str) -> Optional[str]:
    """Returns the path that a URL of a file names; None for other URLs, and for paths.

    Raises ValueError if the URL names another host, or no path.
    """
    url = _URL.fullmatch(text)
    if url is None:
        return None
    host, path = url.groups()
    if host.lower() not in ("", "localhost"):
        raise ValueError(f"{text} names the host {host}: give file:///PATH for a path on this machine")
    if path is None:
        raise ValueError(f"{text} names no path: give file:///PATH for a path on this machine")
    return path
