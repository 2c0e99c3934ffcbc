"""The horovod-rendezvousd to which a node of torchrun belongs, and what that daemon's job allows."""

import json
import subprocess
import time
from typing import NamedTuple, Optional

from horovod.runner._programs import find_program

_PAUSE = 0.5  # s, between two attempts to reach a daemon
_UNREACHED = "can't be reached"  # horovodrun status says so
_PREFIX = "horovodrun: error: "


class Daemon(NamedTuple):
    """Where the daemon is, and its credentials."""

    address: str  # HOST:PORT, or those of the leader and the standbys with commas
    credentials: str  # the text of its token file; secret


class Nodes(NamedTuple):
    """How many nodes take part, from `least` to `most`."""

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least}:{self.most}"


def find(address: str, token_file: str, patience: float) -> tuple[Daemon, dict[str, object]]:
    """Returns the daemon at `address`, whose credentials are in the file, and the status of its job. Waits `patience` seconds for a daemon
    that does not listen yet.

    Raises ValueError, with one line.
    """
    deadline = time.monotonic() + patience
    while True:
        asked = subprocess.run(
            [find_program("horovodrun"), "status", "--json", "--connect", address, "--token-file", token_file],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if asked.returncode == 0:
            break
        said = asked.stderr.strip().splitlines() or [f"horovodrun status ended with {asked.returncode}"]
        why = said[-1].removeprefix(_PREFIX)
        if _UNREACHED not in why or time.monotonic() >= deadline:
            raise ValueError(why.replace("--connect", "--rdzv-endpoint").replace("--token-file", "credentials"))
        time.sleep(_PAUSE)
    try:
        with open(token_file) as file:
            credentials = file.read()
    except OSError as error:
        raise ValueError(f"credentials: {token_file} can't be read: {error.strerror}") from None
    status: dict[str, object] = json.loads(asked.stdout)
    return Daemon(address, credentials), status


def check_size(nodes: Nodes, address: str, status: dict[str, object]) -> None:
    """Raises ValueError, with one line, unless the job forms worlds of as many nodes as torchrun was told."""
    wanted = f"--min-np {nodes.least} --max-np {nodes.most}"
    if status.get("elastic") is not True:
        raise ValueError(f"the job at {address} is static: start its horovod-rendezvousd with {wanted}")
    least, most = _number(status.get("min_np")), _number(status.get("max_np"))
    if least is None or most is None:
        raise ValueError(f"the daemon at {address} does not say how many nodes its job has")
    if least < nodes.least or most > nodes.most:
        raise ValueError(
            f"--nnodes {nodes} does not fit the job at {address}, which has {least} to {most} nodes: "
            f"give --nnodes {least}:{most}, or start its horovod-rendezvousd with {wanted}"
        )


def _number(value: object) -> Optional[int]:
    return value if isinstance(value, int) else None
