"""The rendezvous handler: torchrun's questions, answered by a node of a job of horovod-rendezvousd."""

import atexit
import json
import os
import socket
import sys
from datetime import timedelta
from typing import Any, Optional

from torch.distributed import DistError, TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
)

from horovod.runner import _job
from horovod.torchrun import _daemon
from horovod.torchrun._daemon import Daemon, Nodes
from horovod.torchrun._node import Closed, Left, Node, Place
from horovod.torchrun._store import WorldStore

_BACKEND = "horovod"
_START_TIMEOUT = 60  # s
_CONNECT_TIMEOUT = timedelta(seconds=30)
_STORE_TIMEOUT = timedelta(minutes=5)  # torch's default
# What --rdzv-conf may have. torchrun adds `timeout` by itself.
_OPTIONS = ("credentials", "host", "start_timeout", "timeout")


class Refused(RendezvousClosedError, SystemExit):
    """There is no rendezvous, or none any more. As a SystemExit it ends torchrun with its text on one line and code 1."""

    def __init__(self, text: str) -> None:
        SystemExit.__init__(self, f"torchrun: --rdzv-backend=horovod: {text}")

    def __str__(self) -> str:
        return str(self.code)


def create_handler(parameters: RendezvousParameters) -> "HorovodRendezvousHandler":
    """Returns the handler for torchrun's parameters. Raises Refused, with one line."""
    try:
        return HorovodRendezvousHandler(parameters)
    except (ValueError, OSError, RuntimeError) as error:
        raise Refused(str(error)) from None


class HorovodRendezvousHandler(RendezvousHandler):
    """torchrun's agent on this machine as one node of a job.

    Args:
      parameters: of `config` the keys `credentials` (the daemon's token file), `host` (this node's name in the job; the machine's name) and
        `start_timeout` (the seconds in which the daemon must be there; 60). Without an endpoint a job of one node starts a daemon of its
        own.

    Raises ValueError, OSError or RuntimeError, with one line.
    """

    def __init__(self, parameters: RendezvousParameters) -> None:
        unknown = sorted(set(parameters.config) - set(_OPTIONS))
        if unknown:
            raise ValueError(
                f"--rdzv-conf: {unknown[0]} is not known here; there are credentials, host and start_timeout"
            )
        self._run_id = parameters.run_id
        self._local_address = parameters.local_addr
        self._job: Optional[_job.Job] = None
        self._store: Optional[TCPStore] = None
        self._reserved: Optional[socket.socket] = None
        self._is_closed = False
        patience = parameters.get_as_int("start_timeout", _START_TIMEOUT)
        assert patience is not None
        daemon = self._find_daemon(parameters, patience)
        self._node = Node(daemon, self._run_id, parameters.get("host"), patience)
        atexit.register(self._leave_at_exit)

    def _find_daemon(self, parameters: RendezvousParameters, patience: float) -> Daemon:
        nodes = Nodes(parameters.min_nodes, parameters.max_nodes)
        token_file = parameters.get("credentials")
        if not parameters.endpoint:
            if token_file:
                raise ValueError("credentials without --rdzv-endpoint: give the HOST:PORT of horovod-rendezvousd")
            return self._start_daemon(nodes)
        if not token_file:
            raise ValueError(
                "--rdzv-conf credentials=FILE is missing: give the --token-file of the horovod-rendezvousd at "
                f"{parameters.endpoint}"
            )
        daemon, status = _daemon.find(parameters.endpoint, token_file, patience)
        _daemon.check_size(nodes, parameters.endpoint, status)
        return daemon

    def _start_daemon(self, nodes: Nodes) -> Daemon:
        if nodes.most > 1:
            raise ValueError(
                f"--rdzv-endpoint is missing, and --nnodes is {nodes}: start horovod-rendezvousd --np {nodes.least} --min-np {nodes.least} "
                f"--max-np {nodes.most}, and give its HOST:PORT"
            )
        self._job = _job.Job(_job.Limits(1, 1, 1), report=lambda line: None)
        info = self._job.join_info
        return Daemon(info.address, info.credentials)

    def get_backend(self) -> str:
        return _BACKEND

    def get_run_id(self) -> str:
        return self._run_id

    @property
    def use_agent_store(self) -> bool:
        """False: the workers have a store of their own, at a port that is reserved for their rank 0 and new in each world."""
        return False

    def next_rendezvous(self) -> RendezvousInfo:
        if self._is_closed:
            raise Refused("the rendezvous is closed")
        while True:
            place = self._next_world()
            told = json.loads(place.note)
            if place.rank == 0 or self._connect(told["host"], told["store"]):
                break
        assert self._store is not None
        store: Any = WorldStore(self._store, self._node.is_changing, place.size)
        return RendezvousInfo(store, place.rank, place.size, RendezvousStoreInfo(told["host"], told["master"]))

    def _next_world(self) -> Place:
        try:
            return self._node.next_world(self._open_store)
        except Left as left:
            self._is_closed = True
            print(f"torchrun: this node leaves: {left}", file=sys.stderr, flush=True)
            raise SystemExit(0) from None
        except Closed as closed:
            self._is_closed = True
            raise Refused(str(closed)) from None

    def _connect(self, host: str, port: int) -> bool:
        """Connects to the store of another node; returns False if its world has ended meanwhile."""
        try:
            self._store = TCPStore(host, port, is_master=False, timeout=_CONNECT_TIMEOUT)
        except DistError as error:
            if self._node.is_changing():
                return False
            self._is_closed = True
            self._node.leave(f"the store of rank 0 at {host} can't be reached")
            text = str(error).splitlines()[0]
            raise Refused(f"the store of the node of rank 0 at {host} port {port} can't be reached: {text}") from None
        self._store.set_timeout(_STORE_TIMEOUT)
        return True

    def _open_store(self) -> str:
        """Opens the store of a world of which this node is rank 0, and reserves a port for that of the workers. Returns the note with
        both.
        """
        host = self._local_address or self._node.address
        self._store = TCPStore(host, 0, is_master=True, wait_for_workers=False)
        if self._reserved is not None:
            self._reserved.close()
        # Bound, so that nobody else gets the port. The workers' store can still listen there, because both sockets set SO_REUSEADDR.
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
        self._reserved = socket.socket(family, socket.SOCK_STREAM)
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind((host, 0))
        return json.dumps({"host": host, "store": self._store.port, "master": self._reserved.getsockname()[1]})

    def num_nodes_waiting(self) -> int:
        """Returns 1 if the job wants another world: nodes wait, have failed, or are to leave."""
        return int(not self._is_closed and self._node.is_changing())

    def is_closed(self) -> bool:
        return self._is_closed

    def set_closed(self) -> None:
        self.shutdown()

    def shutdown(self) -> bool:
        """Leaves the job. torchrun calls it at its end: if an exception is being handled, that has ended this node's work."""
        if not self._is_closed:
            self._is_closed = True
            self._node.leave(_failure(sys.exc_info()[1]))
        if self._job is not None:
            self._job.stop()
        return True

    def _leave_at_exit(self) -> None:
        """A signal has ended torchrun, which has not called shutdown() then."""
        self._is_closed = True
        self._node.drain()
        if self._job is not None:
            self._job.stop()


def _failure(error: Optional[BaseException]) -> Optional[str]:
    """Returns what has ended this node's work, in one line; None: nothing has."""
    if error is None:
        return None
    if isinstance(error, ChildFailedError):
        rank, failure = error.get_first_failure()
        end: Any = failure.exitcode
        how = f"signal {-end}" if end < 0 else f"exit code {end}"
        return f"{os.path.basename(error.name)}: rank {rank} ended with {how}"
    return f"{type(error).__name__}: {error}".splitlines()[0]
