"""The file through which the processes of a launch find rank 0's daemon. It contains the job's secret."""

import contextlib
import errno
import hashlib
import ipaddress
import json
import os
import re
import socket
import ssl
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, Optional

from horovod.common._origin import RENDEZVOUS_DIR, Launch
from horovod.runner._addresses import split_host_port
from horovod.runner._handover import SERVER_NAME

# The first pause between two looks, and the longest. Nobody tells of a change: inotify knows only what this machine's
# processes do, not those of other clients of a file server, and no daemon's address is known before the file is there.
_POLL_SECONDS = (0.02, 0.5)
_NOTICE_SECONDS = 30.0
_CONNECT_SECONDS = 2.0
_LONGEST_NAME = 100


class Rendezvous(NamedTuple):
    """The addresses of rank 0's daemon, and the credentials for its job."""

    addresses: list[str]  # HOST:PORT, of which not all need be reachable
    credentials: str
    authority: str  # PEM text: the authority that has certified the daemon
    size: int  # of the launch


def file_of(launch: Launch) -> "RendezvousFile":
    """Returns the file of a launch. Raises ValueError if the directory can't be used; the text says why."""
    chosen = os.environ.get(RENDEZVOUS_DIR)
    if chosen:
        if not os.path.isdir(chosen):
            raise ValueError(f"{RENDEZVOUS_DIR}: there is no directory {chosen} here")
        return RendezvousFile(Path(chosen) / _name_of(launch))
    if not launch.is_local:
        return RendezvousFile(_private(_home()) / _name_of(launch))
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and _is_private(runtime):
        return RendezvousFile(Path(runtime) / _name_of(launch))
    return _file_of_local(launch)


def _file_of_local(launch: Launch) -> "RendezvousFile":
    """Returns the file of a launch on this machine: in the directory for temporary files, or in the home directory if another user
    has taken the name there. The other user may give the name free while the launch starts, so that its processes choose
    differently: all look at both places.
    """
    usual = Path(tempfile.gettempdir()) / f"horovod-{os.getuid()}"
    first = usual / _name_of(launch)
    try:
        second = _home() / _name_of(launch, _machine())  # machines may share it
    except ValueError:
        return RendezvousFile(_private(usual) / first.name)
    try:
        _private(usual)
    except ValueError:
        if _is_own(usual):
            raise
        _private(second.parent)
        return RendezvousFile(second, first)
    return RendezvousFile(first, second)


def _name_of(launch: Launch, scope: str = "") -> str:
    readable = re.sub(r"[^\w.@-]", "_", launch.name or launch.launcher, flags=re.ASCII)[:_LONGEST_NAME]
    digest = hashlib.sha256((scope + launch.name).encode(errors="surrogateescape")).hexdigest()[:16]
    return f"{readable}-{digest}"


def _home() -> Path:
    try:
        return Path.home() / ".horovod"
    except RuntimeError:
        raise ValueError(f"user {os.getuid()} has no home directory; set {RENDEZVOUS_DIR} to a directory") from None


def _machine() -> str:
    """Returns the identity of this machine; a container with a network of its own is one too."""
    network = os.stat("/proc/self/ns/net")
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text()} {network.st_dev}:{network.st_ino} "


def _is_own(path: Path) -> bool:
    try:
        return os.lstat(path).st_uid == os.getuid()
    except OSError:
        return False


def _is_private(path: "str | Path") -> bool:
    """Returns whether it is this user's directory, in which no other user can do anything."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o022


def _private(path: Path) -> Path:
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    except OSError as error:
        raise ValueError(
            f"{path} can't be made ({error.strerror}); set {RENDEZVOUS_DIR} to another directory"
        ) from None
    if not _is_private(path):
        raise ValueError(
            f"{path} is not a directory of user {os.getuid()} that nobody else can write to; set {RENDEZVOUS_DIR} to another"
        )
    return path


class RendezvousFile:
    """A file that only its owner can read. Rank 0 writes and removes it; the other ranks wait for it.

    Args:
      path: the file.
      other: another place in which rank 0 may have written it; None: there is none.
    """

    _NO_FILE = "{} is not a file; remove it"

    def __init__(self, path: Path, other: Optional[Path] = None) -> None:
        self._path = path
        self._other = other
        self._written: Optional[int] = None  # the inode

    def write(self, rendezvous: Rendezvous) -> None:
        """Replaces the file of an earlier launch, atomically. Raises ValueError if it can't; the text says why."""
        try:
            self._replace(rendezvous)
        except IsADirectoryError:
            raise ValueError(self._NO_FILE.format(self._path)) from None
        except OSError as error:
            raise ValueError(
                f"{self._path} can't be written ({error.strerror}); set {RENDEZVOUS_DIR} to another directory"
            ) from None

    def _replace(self, rendezvous: Rendezvous) -> None:
        descriptor, temporary = tempfile.mkstemp(prefix=".", dir=self._path.parent)  # mode 0600
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(rendezvous._asdict(), file)
                file.flush()
                os.fsync(file.fileno())
                self._written = os.fstat(file.fileno()).st_ino
            os.replace(temporary, self._path)
        except BaseException:
            os.unlink(temporary)
            raise

    def remove(self) -> None:
        """Removes the file that `write` has written, if it still exists."""
        with contextlib.suppress(OSError):
            if self._written is not None and os.lstat(self._path).st_ino == self._written:
                os.unlink(self._path)

    def wait(self, timeout: float, hint: str) -> Rendezvous:
        """Returns the rendezvous, with the first of its addresses at which the daemon answers as its only address. A file whose daemon
        does not answer is that of an earlier launch, which has not removed it; another program may use the port now.

        Raises:
          ValueError: the file can't be read, belongs to another user, or is accessible to others.
          RuntimeError: no file came in time; the text says where it was expected, and `hint`.
        """
        deadline = time.monotonic() + timeout
        notice = time.monotonic() + _NOTICE_SECONDS
        pause, longest = _POLL_SECONDS
        while True:
            what = f"{self._path} is not there"
            for path in self._places():
                rendezvous = self._read(path)
                address = _first_answering(rendezvous) if rendezvous is not None else None
                if rendezvous is not None and address is not None:
                    return rendezvous._replace(addresses=[address])
                if rendezvous is not None:
                    what = f"nobody answers at {', '.join(rendezvous.addresses)} of {path}"
            now = time.monotonic()
            if now >= deadline:
                raise RuntimeError(f"after {timeout:g} s {what} ({hint})")
            if now >= notice:
                notice = deadline
                print(f"Horovod: {what} ({hint})", file=sys.stderr, flush=True)
            time.sleep(pause)
            pause = min(2 * pause, longest)

    def _places(self) -> list[Path]:
        return [self._path, *(path for path in [self._other] if path is not None and _is_private(path.parent))]

    def _read(self, path: Path) -> Optional[Rendezvous]:
        try:
            # Listing the directory refreshes it on NFS, which may have cached that the file was missing.
            os.listdir(path.parent)
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            what = self._NO_FILE if error.errno == errno.ELOOP else f"{{}} can't be read ({error.strerror})"
            raise ValueError(what.format(path)) from None
        try:
            self._check(path, os.fstat(descriptor))
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read()
        finally:
            os.close(descriptor)
        try:
            return _checked(Rendezvous(**json.loads(data)))
        except (ValueError, TypeError, AttributeError, RecursionError, ssl.SSLError):
            raise ValueError(f"{path} does not hold what rank 0 writes; remove it, and start anew") from None

    def _check(self, path: Path, info: os.stat_result) -> None:
        """Raises ValueError unless it is a file that no other user can have written or read."""
        if not stat.S_ISREG(info.st_mode):
            raise ValueError(self._NO_FILE.format(path))
        if info.st_uid != os.getuid():
            raise ValueError(
                f"{path} belongs to user {info.st_uid}, not to {os.getuid()}, and is not trusted; "
                f"set {RENDEZVOUS_DIR} to another directory"
            )
        if info.st_mode & 0o077:
            raise ValueError(
                f"{path} is open to other users (mode {stat.S_IMODE(info.st_mode):04o}), who may know what is in "
                "it; remove it, and start anew"
            )


def _checked(rendezvous: Rendezvous) -> Rendezvous:
    """Returns the rendezvous. Raises ValueError, TypeError, AttributeError or ssl.SSLError if the content is invalid."""
    _context_of(rendezvous)
    if not isinstance(rendezvous.credentials, str) or not isinstance(rendezvous.size, int) or not rendezvous.addresses:
        raise ValueError
    for address in rendezvous.addresses:
        host, port = split_host_port(address)
        ipaddress.ip_address(host)
        if not 0 < port < 1 << 16:
            raise ValueError
    return rendezvous


def _context_of(rendezvous: Rendezvous) -> ssl.SSLContext:
    """Returns a TLS context for connections to this rendezvous daemon only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=rendezvous.authority)
    context.set_alpn_protocols(["h2"])
    return context


def _first_answering(rendezvous: Rendezvous) -> Optional[str]:
    """Returns the first address at which the daemon proves its identity."""
    context = _context_of(rendezvous)
    for address in rendezvous.addresses:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(split_host_port(address), _CONNECT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=SERVER_NAME),
        ):
            return address
    return None
