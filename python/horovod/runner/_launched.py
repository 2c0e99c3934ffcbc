"""Processes that srun, mpirun or torchrun has started together, as one static job. Rank 0 runs the daemon, and a file tells the
other ranks its address.
"""

import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Optional

from horovod.common import _process
from horovod.common._origin import RENDEZVOUS_DIR, Launch, note_launch
from horovod.common._texts import one_line
from horovod.common.exceptions import HorovodInternalError
from horovod.runner import _addresses, _adoption, _job, _rendezvous_file
from horovod.runner._rendezvous_file import Rendezvous, RendezvousFile

_START_TIMEOUT = 300  # s, from the hvd.init() of the first process to that of the last
_WEEK = 604800  # s, which is the most that horovod-rendezvousd takes
_OWN_END_SECONDS = 2.0  # for a process to end by itself, with its own error, once the job has failed
_VERDICT_SECONDS = 3.0
# For the launcher to see the first failure: torchrun looks every 0.1 s. torchrun and mpirun end it, by their SIGTERM to the
# others. srun lets them run, and reports nothing.
_LAUNCHER_SECONDS = 1.0
_SUCCESS = re.compile(
    r"horovod-rendezvousd: (\d+ ranks? finished|\d+ workers? exited with code 0 without hvd\.init\(\))"
)


def join(launch: Launch, call: str, timeout: float) -> None:
    """Makes this process the worker of its rank. It leaves the job when it ends. `call` is what the script has called, for messages.
    The others have `timeout` seconds to join, or those of HOROVOD_START_TIMEOUT, whichever is less.

    Raises HorovodInternalError, with a one-line message.
    """
    patience = max(1.0, float(round(min(_start_timeout(), timeout))))
    host = None
    try:
        file = _rendezvous_file.file_of(launch)
        host = _Rank0(launch, file, patience) if launch.rank == 0 else None
        rendezvous = host.rendezvous if host is not None else _find(launch, file, patience, call)
        _check_size(launch, rendezvous)
        if launch.launcher == "torchrun":
            os.environ.setdefault("HOROVOD_TORCH_ENV", "0")  # torchrun's own variables stay
        member = _Member(launch, rendezvous, host, patience)
        _wait_for_start(launch, member, patience)
    except (OSError, ValueError, RuntimeError) as error:
        text = f"{call}: process {launch.rank} of {launch.launcher}: {error}"
        raise HorovodInternalError(one_line(text)) from None
    finally:
        if host is not None:
            file.remove()
    member.joined = True
    note_launch(launch)


def _check_size(launch: Launch, rendezvous: Rendezvous) -> None:
    """Raises ValueError if this process has another size of the launch than rank 0. A rank that rank 0 does not know of would wait
    until all others have ended.
    """
    if launch.size != rendezvous.size:
        text = f"{launch.variable} is {launch.size} here, and {rendezvous.size} for rank 0: it must be the same for all"
        raise ValueError(text)


def _wait_for_start(launch: Launch, member: "_Member", patience: float) -> None:
    try:
        member.adoption.wait_for_start(patience + 30)  # the daemon gives up first
    except RuntimeError as error:
        raise RuntimeError(f"{error} ({_advice(launch)})" if launch.rank == 0 else str(error)) from None


def _advice(launch: Launch) -> str:
    """Returns advice for a process that waits alone, because another process of the launch may not have called hvd.init()."""
    return f"a process that is not a rank of {launch.launcher} needs to be started without {launch.variable}"


def _name(rank: int) -> str:
    return f"task{rank}"


def _start_timeout() -> float:
    text = os.environ.get("HOROVOD_START_TIMEOUT", "")
    if not text:
        return _START_TIMEOUT
    digits = text.lstrip("0") if text.isascii() and text.isdigit() else ""
    if (
        not digits or len(digits) > len(str(_WEEK)) or int(digits) > _WEEK
    ):  # int() does not convert numbers of any length
        raise HorovodInternalError(
            f"HOROVOD_START_TIMEOUT: {text[:40]!r} is not a whole number of seconds, as 300, up to a week ({_WEEK})"
        )
    return float(digits)


class _Rank0:
    """Rank 0's part: the daemon, which is a child of this process, and the file that contains its address."""

    def __init__(self, launch: Launch, file: RendezvousFile, patience: float) -> None:
        self._said = threading.Event()
        limits = _job.Limits(
            launch.size,
            hosts=[_name(rank) for rank in range(launch.size)],
            start_timeout=round(patience),
            keep_host_order=True,
        )
        addresses = [_addresses.loopback_address()] if launch.is_local else _addresses.own_addresses()
        everywhere = "::" if ":" in addresses[0] else "0.0.0.0"
        listen = addresses if launch.is_local else [everywhere]
        self.job = _job.Job(limits, listen, addresses[0], report=self._show)
        self._file = file
        port = _addresses.split_host_port(self.job.address)[1]
        self.rendezvous = Rendezvous(
            [_addresses.join_host_port(address, port) for address in addresses],
            self.job.join_info.credentials,
            self.job.authority,
            launch.size,
        )
        try:
            file.write(self.rendezvous)
        except BaseException:
            self.job.stop()
            raise

    def await_verdict(self) -> None:
        """Waits a short time for the daemon's verdict, which this process forwards."""
        self._said.wait(_VERDICT_SECONDS)

    def _show(self, line: str) -> None:
        """Shows a line of the daemon, except the message of success, which users of launchers do not need."""
        if not _SUCCESS.match(line) and sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)
        self._said.set()

    def close(self) -> None:
        """Removes the file and stops the daemon, when the job has ended."""
        self._file.remove()
        self.job.stop()


def _find(launch: Launch, file: RendezvousFile, patience: float, call: str) -> Rendezvous:
    where = f"on {one_line(launch.root)}" if launch.root else "on its machine"
    hint = f"rank 0, {where}, writes it in {call}"
    if not launch.is_local:
        hint += f"; all machines must see it: set {RENDEZVOUS_DIR} to a directory that they share"
    return file.wait(patience, f"{hint}; {_advice(launch)}")


class _Member:
    """This process's part in the job, until it ends."""

    def __init__(self, launch: Launch, rendezvous: Rendezvous, host: Optional[_Rank0], patience: float) -> None:
        self._pid = os.getpid()
        self._host = host
        self._ending = threading.Event()
        self.joined = False
        self.adoption = _adoption.Adoption(
            rendezvous.addresses[0],
            rendezvous.credentials,
            host=_name(launch.rank),
            on_stop=self._stop,
            start_timeout=patience,
        )
        # hvd.init()'s own function, which comes later, runs before.
        atexit.register(self._leave)

    def _stop(self, seconds: float) -> None:
        # A process that waits in a collective fails there, with the reason; all others end here.
        if not self._ending.wait(min(_OWN_END_SECONDS, seconds / 2)):
            os.kill(self._pid, signal.SIGTERM)

    def _leave(self) -> None:
        """Launchers take the first process that they see ending badly for the cause: so that one ends at once, and
        those that fail in consequence only when the daemon has judged, and the launcher has looked."""
        if os.getpid() != self._pid:
            return  # a forked child
        self._ending.set()
        process = _process.process
        if self.joined and not process.failed:
            self.adoption.exit(0)
            if self._host is not None:
                self._host.close()
            return
        patience = _VERDICT_SECONDS if process.failed and process.blames_peer else 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.adoption.exit(process.status if process.failed else 1, patience)
        if self._host is not None:
            self._host.await_verdict()
        if process.failed and process.blames_peer:
            time.sleep(_LAUNCHER_SECONDS)
