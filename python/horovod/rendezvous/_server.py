"""Servers and their jobs."""

import atexit
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Optional, Union

from horovod._ffi import _rendezvous as api
from horovod.rendezvous._arguments import Host, addresses_of, check_callbacks, folder_of, hosts_of
from horovod.rendezvous._errors import translated
from horovod.rendezvous._handle import Handle


@dataclass(frozen=True)
class Worker:
    """A process that a job wants to run: `worker` is its name from now on, `host` one that was
    offered, `environment` what it must find in its environment besides what is its own."""

    worker: int
    host: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Result:
    """How a job has ended. `exit_code` is 0, or the first failing worker's (128 + its signal), or
    that of :meth:`Job.request_stop`. If a worker is to blame, `rank` (else -1), `host`,
    `exit_meaning` and `exception` say which, and what it did."""

    success: bool
    exit_code: int
    summary: str
    rank: int
    host: str
    exit_meaning: str
    exception: str


@dataclass(frozen=True)
class EarlierWorker:
    """A process that `start_worker` of an earlier scheduler was asked for; `pid` as that has
    reported, 0 if it has not."""

    worker: int
    host: str
    pid: int


@dataclass(frozen=True)
class KeptJob:
    """A job in the state directory that is not on the server: to be added again with the same `id`
    and options, or forgotten. `result`: it has ended. `problem`: it can't be read, in one line that says
    where it is and what to do; `id` is empty if not even that can be."""

    id: str
    np: int
    min_np: Optional[int]
    max_np: Optional[int]
    starts_workers: bool
    result: Optional[Result]
    problem: Optional[str]


class Server:
    """A rendezvous server, at `listen`: numeric "address:port", one or several; port 0 is a free one.

    With a `state_dir`, a folder of this server's alone, jobs outlive this process: a later server
    with the same folder and the same `listen` has the same addresses and credentials.
    :meth:`kept_jobs` are those that can be added again.

    It lives until :meth:`close`, the end of its ``with`` block, or the end of the program. Thread-safe.
    After ``os.fork`` it is the parent's only.

    Raises ValueError (no numeric address, no such folder can be made) and RendezvousError (can't
    listen there, another process uses the folder).
    """

    def __init__(
        self,
        listen: Union[str, Iterable[str]] = "127.0.0.1:0",
        *,
        state_dir: Union[str, "os.PathLike[str]", None] = None,
    ) -> None:
        self._jobs: set[Job] = set()
        with translated():
            server = api.start(addresses_of(listen), folder_of(state_dir))
        self._addresses = api.addresses(server)
        self._handle = Handle(server, "the server")
        _open_servers.add(self)

    @property
    def addresses(self) -> list[str]:
        """With their real ports."""
        return list(self._addresses)

    def add_job(
        self,
        np: int,
        *,
        min_np: Optional[int] = None,
        max_np: Optional[int] = None,
        id: Optional[str] = None,
        start_worker: Optional[Callable[[Worker], object]] = None,
        stop_worker: Optional[Callable[[int, float], object]] = None,
        host_free: Optional[Callable[[str], object]] = None,
        finished: Optional[Callable[[Result], object]] = None,
        notice: Optional[Callable[[dict[str, Any]], object]] = None,
        journal_failed: Optional[Callable[[str], object]] = None,
        **options: Union[int, float, bool],
    ) -> "Job":
        """Begins a job of `np` workers. With `min_np` or `max_np` it is elastic: it goes on with so
        many workers. If the state directory has a job of this `id`, that one goes on, with the
        membership that it had; see :meth:`Job.earlier_workers`.

        Callbacks come one at a time from a thread of the job's. They must not block, and may call
        everything but :meth:`Job.remove` and :meth:`close`. What they raise is printed, and else
        ignored; the worker of a `start_worker` that raises counts as one that could not be started.

        Args:
            id: unique on this server; a random one by default. As names of hosts, at most 255 bytes of UTF-8 without
                blanks and control characters.
            start_worker: starts a process, later or at once; :meth:`Job.report_started` and
                :meth:`Job.report_exit` tell what came of it.
            stop_worker: given a worker and a time in seconds: SIGTERM now, SIGKILL after that. Every
                worker that was started must be reported to have exited, stopped or not.
            host_free: the job has left this host; its slots are free.
            finished: the job has ended; comes once.
            notice: something happened, mostly in elastic jobs: a dictionary with "kind", "text" and
                more, as in ``--event-log``.
            journal_failed: the state directory can't be written, and why: nothing is decided any
                more. Remove the job, and add it again when it can be.
            options: `start_timeout`, `elastic_timeout`, `rejoin_timeout`, `join_delay`,
                `drain_grace`, `failure_grace`, `failure_window`, `cooldown`, `cooldown_longest` in
                seconds, with a state directory `reattach_timeout`; `spares`, `max_failures`,
                `failures_without_progress`, `reset_limit`, `encrypt_data`; ``horovod/rendezvous.h`` has their meanings and defaults.

        Raises ValueError, TypeError (no such option, a value of another type) and RendezvousError (there is a job of this id,
        or the kept one had other options, or has ended).
        """
        for name in options:
            if name not in _OPTIONS:
                raise TypeError(f"add_job has no option {name!r}; it has {', '.join(sorted(_OPTIONS))}")
        sizes = {"np": np, "min_np": min_np or 0, "max_np": max_np or 0}
        callbacks = (start_worker, stop_worker, host_free, finished, notice, journal_failed)
        return Job(self, id, {**options, **sizes}, *callbacks)

    def kept_jobs(self) -> list[KeptJob]:
        """The jobs in the state directory that are not on this server."""
        with self._handle.use() as server:
            return [_kept_job(**kept) for kept in api.kept_jobs(server)]

    def forget_job(self, id: str) -> None:
        """Removes a job from the state directory. Its agents and workers that still wait give up.

        Raises RendezvousError: there is none, or it is on the server.
        """
        with self._handle.use() as server:
            api.call("forget_job", server, api.text("id", id))

    def metrics(self) -> str:
        """All jobs in Prometheus' text format."""
        with self._handle.use() as server:
            return api.text_of("metrics", server)

    def close(self) -> None:
        """Removes all jobs and ends the server. The second time nothing happens.

        Raises RendezvousError if this is a callback.
        """
        for job in list(self._jobs):
            job.remove()
        self._handle.end(lambda server: api.call("stop", server))
        _open_servers.discard(self)

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


class Job:
    """A job on a server, made by :meth:`Server.add_job`. Thread-safe."""

    def __init__(
        self,
        server: Server,
        name: Optional[str],
        options: dict[str, Any],
        start_worker: Optional[Callable[[Worker], object]],
        stop_worker: Optional[Callable[[int, float], object]],
        host_free: Optional[Callable[[str], object]],
        finished: Optional[Callable[[Result], object]],
        notice: Optional[Callable[[dict[str, Any]], object]],
        journal_failed: Optional[Callable[[str], object]],
    ) -> None:
        def start(worker: int, host: str, environment: dict[str, str]) -> None:
            assert start_worker is not None
            try:
                start_worker(Worker(worker, host, environment))
            except BaseException as error:
                self.report_exit(worker, start_error=f"{type(error).__name__}: {error}")
                raise

        check_callbacks(start_worker=start_worker, stop_worker=stop_worker, host_free=host_free)
        check_callbacks(finished=finished, notice=notice, journal_failed=journal_failed)
        self._server = server
        self._callbacks = api.Callbacks(
            None if start_worker is None else start,
            None if stop_worker is None else lambda worker, grace: _ignored(stop_worker(worker, grace)),
            None if host_free is None else lambda host: _ignored(host_free(host)),
            None if finished is None else lambda result: _ignored(finished(Result(**result))),
            None if notice is None else lambda text: _ignored(notice(json.loads(text))),
            None if journal_failed is None else lambda why: _ignored(journal_failed(why)),
        )
        with server._handle.use() as home:
            job = api.add_job(home, name, options, self._callbacks)
        self._id = api.job_id(job)
        self._handle = Handle(job, f"job {self._id}")
        server._jobs.add(self)

    @property
    def id(self) -> str:
        """Its name on the server."""
        return self._id

    def credentials(self) -> str:
        """What agents need to join the job: the content of the file, of mode 0600, for
        ``horovod-agent --join ADDRESS --token-file FILE``. Secret."""
        with self._handle.use() as job:
            return api.text_of("credentials", job)

    def offer_slots(self, hosts: Union[Mapping[str, int], Iterable[Host]]) -> None:
        """All hosts and slots that the job may use now: names with numbers of slots, or
        :class:`Host`. A host that is named for the first time, or again after it was free, joins;
        one that is no longer named is drained, in an elastic job.

        In a job whose processes agents start, these are the hosts whose agents may take part, each
        with the smaller of the two numbers of slots; the agents of others wait until they are
        offered. Without any call all agents take part.

        Raises TypeError or ValueError; nothing has changed then.
        """
        given = hosts_of(hosts)
        with self._handle.use() as job:
            api.offer_slots(job, [(host.host, host.slots, host.machine) for host in given])

    def set_limits(self, min_np: int, max_np: Optional[int] = None) -> None:
        """Elastic jobs: from now on worlds have from `min_np` to `max_np` (None: any number of)
        workers. Those beyond the maximum leave at the next commit, without a step being lost; the
        minimum counts when the next world forms.

        Raises ValueError, and RendezvousError for a job of fixed size.
        """
        with self._handle.use() as job:
            api.call("set_limits", job, api.int32("min_np", min_np), api.int32("max_np", max_np or 0))

    def earlier_workers(self) -> list[EarlierWorker]:
        """Of a job that was added again, the processes of which it must be said whether they still
        run (:meth:`report_started`, with the pid), have ended (:meth:`report_exit`) or have never
        been there (:meth:`start_again`). They are no children of this process:
        ``os.pidfd_open(pid)`` is readable when one ends. A host takes part again when that was said
        of all its processes; if it is not within `reattach_timeout`, the host is a lost one."""
        with self._handle.use() as job:
            return [EarlierWorker(*earlier) for earlier in api.earlier_workers(job)]

    def start_again(self, worker: int) -> None:
        """An earlier worker never had a process: `start_worker` is called for it again.

        Raises RendezvousError: it is none of :meth:`earlier_workers`.
        """
        with self._handle.use() as job:
            api.call("start_again", job, api.uint64("worker", worker))

    def report_started(self, worker: int, pid: int) -> None:
        """The process of `worker` was started, or an earlier one still runs."""
        with self._handle.use() as job:
            api.call("report_started", job, api.uint64("worker", worker), api.int64("pid", pid))

    def report_exit(
        self,
        worker: int,
        returncode: int = 0,
        *,
        core_dumped: bool = False,
        out_of_memory: bool = False,
        start_error: str = "",
        last_output: str = "",
        unknown_end: str = "",
    ) -> None:
        """The process of `worker` has ended, with `returncode` as of ``subprocess.Popen`` (-N:
        killed by signal N), or could not be started, because of `start_error`. `last_output`, its
        last lines on stderr, goes into the report of a failure. `unknown_end`: no returncode is known,
        as of an earlier scheduler's process, but this; it has failed unless it had finished."""
        api.int32("returncode", returncode)
        with self._handle.use() as job:
            api.report_exit(
                job,
                worker,
                exit_code=max(returncode, 0),
                signal=max(-returncode, 0),
                core_dumped=core_dumped,
                out_of_memory=out_of_memory,
                start_error=api.shown(start_error) or None,
                last_output=api.shown(last_output) or None,
                unknown_end=api.shown(unknown_end) or None,
            )

    def drain(self, host: str, grace: float = 30, reason: str = "") -> None:
        """Has the host leave an elastic job at the next commit, without a step being lost; after
        `grace` seconds its workers are stopped."""
        with self._handle.use() as job:
            api.call("drain", job, api.text("host", host), api.seconds("grace", grace), api.shown(reason))

    def request_stop(self, reason: str = "", exit_code: int = 1, grace: float = 5) -> None:
        """Ends the job. Workers get SIGTERM, after `grace` seconds SIGKILL. A second call shortens
        the grace."""
        with self._handle.use() as job:
            api.call(
                "request_stop", job, api.shown(reason), api.int32("exit_code", exit_code), api.seconds("grace", grace)
            )

    def describe(self) -> dict[str, Any]:
        """The job now: "state" (forming, running, resetting, done, failed), "world", "size",
        "hosts" with their "workers", and more; ``horovod/rendezvous.h`` has them all."""
        with self._handle.use() as job:
            described: dict[str, Any] = json.loads(api.text_of("describe", job))
        return described

    def metrics(self) -> str:
        """As :meth:`Server.metrics`, of this job alone."""
        with self._handle.use() as job:
            return api.text_of("job_metrics", job)

    def remove(self) -> None:
        """Removes the job from the server, ended or not; no callback comes after that. With a state
        directory, a job that has not ended stays there to be added again, and its workers train on
        meanwhile; else the scheduler must stop the processes that it has started. The second time
        nothing happens.

        Raises RendezvousError if this is a callback.
        """
        self._handle.end(lambda job: api.call("remove_job", job))
        self._server._jobs.discard(self)


def _kept_job(ended: Optional[dict[str, Any]], min_np: int, max_np: int, **kept: Any) -> KeptJob:
    result = None if ended is None else Result(**ended)
    return KeptJob(min_np=min_np or None, max_np=max_np or None, result=result, **kept)


def _ignored(_: object) -> None:
    """For callbacks, whatever they return."""


_OPTIONS = {
    "cooldown",
    "cooldown_longest",
    "drain_grace",
    "elastic_timeout",
    "encrypt_data",
    "failure_grace",
    "failure_window",
    "failures_without_progress",
    "join_delay",
    "max_failures",
    "reattach_timeout",
    "rejoin_timeout",
    "reset_limit",
    "spares",
    "start_timeout",
}
_open_servers: set[Server] = set()


@atexit.register
def _close_all() -> None:
    """No thread of the library may call into an interpreter that has ended."""
    for server in list(_open_servers):
        server.close()
