"""Rendezvous servers and their jobs."""

import atexit
import json
import os
import signal
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
    """A process that a job asks for.

    Args:
      worker: the worker's number, which identifies it in all later calls.
      host: the host on which it is to run, one of those offered.
      environment: variables to be set in its environment, in addition to the scheduler's own.
    """

    worker: int
    host: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Result:
    """How a job has ended.

    Args:
      success: whether all workers have succeeded.
      exit_code: 0; or the exit code of the first worker that failed (128 + the signal); or the one given to
        :meth:`Job.request_stop`.
      summary: the reason, in one line.
      rank: the rank of the worker that failed, or -1.
      host: that worker's host.
      exit_meaning: how that worker ended.
      exception: the exception that it reported.
    """

    success: bool
    exit_code: int
    summary: str
    rank: int
    host: str
    exit_meaning: str
    exception: str


@dataclass(frozen=True)
class EarlierWorker:
    """A process for which `start_worker` was called in an earlier scheduler.

    Args:
      worker: the worker's number.
      host: the worker's host.
      pid: the process id that the earlier scheduler reported; 0: it reported none.
    """

    worker: int
    host: str
    pid: int


@dataclass(frozen=True)
class KeptJob:
    """A job in the state directory that is not on the server. It can be added again with the same `id` and options, or
    forgotten.

    Args:
      id: the job's id; "" if not even that can be read.
      np: its number of workers.
      min_np: its minimum number of workers, or None.
      max_np: its maximum number of workers, or None.
      starts_workers: whether it had a callback `start_worker`.
      result: how it has ended; None if it has not.
      problem: why it can't be read: one line with the place and the remedy; None if it can.
    """

    id: str
    np: int
    min_np: Optional[int]
    max_np: Optional[int]
    starts_workers: bool
    result: Optional[Result]
    problem: Optional[str]


class Server:
    """A rendezvous server. Thread-safe. After ``os.fork`` only the parent may use it.

    It runs until :meth:`close`, the end of its ``with`` block, or the end of the program.

    Args:
      listen: where it listens: a numeric "address:port", or several. Port 0 stands for a free port.
      state_dir: a folder that only this server uses. With it, jobs outlive this process: a later server with the same folder
        and the same `listen` has the same addresses and credentials, and :meth:`kept_jobs` lists the jobs that can be added
        again.

    Raises:
      ValueError: `listen` is not a numeric address, or the folder can't be created.
      RendezvousError: the server can't listen there, or another process uses the folder.

    Example:
      >>> from horovod import rendezvous
      >>> with rendezvous.Server("127.0.0.1:0") as server:
      ...     job = server.add_job(2, id="night")
      ...     job.offer_slots({"localhost": 2})
      ...     job.describe()["state"]
      'forming'
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
        """The addresses at which it listens, with the actual ports."""
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
        """Begins a job of `np` workers. With `min_np` or `max_np` it is elastic: it continues with that many workers.

        If the state directory contains a job with this `id`, that job continues with its membership; see
        :meth:`Job.earlier_workers`. Callbacks are called one at a time, on a thread of the job. They must not block, and may call
        everything except :meth:`Job.remove` and :meth:`close`. Their exceptions are printed and otherwise ignored, except that
        the worker of a `start_worker` that raises counts as one that could not be started.

        Args:
          np: the number of workers.
          min_np: the minimum number of workers of an elastic job.
          max_np: the maximum number of workers of an elastic job.
          id: the job's id, unique on this server; by default a random one. Like host names, at most 255 bytes of UTF-8 without
            blanks and control characters.
          start_worker: starts a process for a :class:`Worker`, now or later. :meth:`Job.report_started` and
            :meth:`Job.report_exit` report the outcome.
          stop_worker: stops a process, given the worker's number and a time in seconds: SIGTERM now, SIGKILL after that time. The
            exit of every started worker must be reported, stopped or not.
          host_free: the job has left this host; its slots are free.
          finished: the job has ended, with this :class:`Result`. Called once.
          notice: an event, mostly in elastic jobs: a dictionary with "kind", "text" and more, as in ``--event-log``.
          journal_failed: the state directory can't be written, and why. The job makes no decisions any more: remove it, and add
            it again when the directory can be written.
          options: `start_timeout`, `elastic_timeout`, `rejoin_timeout`, `join_delay`, `drain_grace`, `failure_grace`,
            `failure_window`, `cooldown`, `cooldown_longest` in seconds, with a state directory `reattach_timeout`; `spares`,
            `max_failures`, `failures_without_progress`, `reset_limit`, `encrypt_data`. ``horovod/rendezvous.h`` has their
            meanings and defaults.

        Returns:
          The job.

        Raises:
          ValueError: an argument is invalid.
          TypeError: there is no such option, or a value has the wrong type.
          RendezvousError: the server has a job with this id already; or the kept job had other options, or has ended.
        """
        for name in options:
            if name not in _OPTIONS:
                raise TypeError(f"add_job has no option {name!r}; it has {', '.join(sorted(_OPTIONS))}")
        sizes = {"np": np, "min_np": min_np or 0, "max_np": max_np or 0}
        callbacks = (start_worker, stop_worker, host_free, finished, notice, journal_failed)
        return Job(self, id, {**options, **sizes}, *callbacks)

    def kept_jobs(self) -> list[KeptJob]:
        """Returns the jobs in the state directory that are not on this server."""
        with self._handle.use() as server:
            return [_kept_job(**kept) for kept in api.kept_jobs(server)]

    def forget_job(self, id: str) -> None:
        """Removes a job from the state directory. Its agents and workers that still wait give up.

        Args:
          id: the job's id.

        Raises:
          RendezvousError: there is no such job, or it is on the server.
        """
        with self._handle.use() as server:
            api.call("forget_job", server, api.text("id", id))

    def metrics(self) -> str:
        """Returns the metrics of all jobs in the Prometheus text format."""
        with self._handle.use() as server:
            return api.text_of("metrics", server)

    def close(self) -> None:
        """Removes all jobs and ends the server. Further calls do nothing.

        Raises:
          RendezvousError: it is called from a callback.
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
    """A job on a server. Thread-safe. :meth:`Server.add_job` creates it, with these arguments.

    Args:
      server: the server.
      name: the job's id, or None.
      options, start_worker, stop_worker, host_free, finished, notice, journal_failed: as for :meth:`Server.add_job`.
    """

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
            # The library's threads block all signals. A process that is started here would inherit that, and ignore SIGTERM.
            blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
            try:
                start_worker(Worker(worker, host, environment))
            except BaseException as error:
                self.report_exit(worker, start_error=f"{type(error).__name__}: {error}")
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

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
        """The job's id on the server."""
        return self._id

    def credentials(self) -> str:
        """Returns the secret that agents need to join the job: the content of the file for
        ``horovod-agent --join ADDRESS --token-file FILE``, whose mode should be 0600.
        """
        with self._handle.use() as job:
            return api.text_of("credentials", job)

    def offer_slots(self, hosts: Union[Mapping[str, int], Iterable[Host]]) -> None:
        """Sets all hosts and slots that the job may use from now on.

        A host that is named for the first time, or again after it was free, joins. In an elastic job, a host that is no longer
        named is drained. In a job whose processes are started by agents, these are the hosts whose agents may take part, each
        with the smaller of the two numbers of slots; agents on other hosts wait until their host is offered. Before the first
        call all agents take part.

        Args:
          hosts: the numbers of slots by host name, or :class:`Host` objects.

        Raises:
          TypeError: an argument has the wrong type; nothing has changed.
          ValueError: a host is invalid; nothing has changed.
        """
        given = hosts_of(hosts)
        with self._handle.use() as job:
            api.offer_slots(job, [(host.host, host.slots, host.machine) for host in given])

    def set_limits(self, min_np: int, max_np: Optional[int] = None) -> None:
        """Changes the limits of an elastic job. Workers beyond the maximum leave at the next commit, so no step is lost. The minimum
        applies when the next world forms.

        Args:
          min_np: the minimum number of workers of a world.
          max_np: the maximum number of workers; None: no limit.

        Raises:
          ValueError: the limits are invalid.
          RendezvousError: the job is of fixed size.
        """
        with self._handle.use() as job:
            api.call("set_limits", job, api.int32("min_np", min_np), api.int32("max_np", max_np or 0))

    def earlier_workers(self) -> list[EarlierWorker]:
        """Returns the processes of a job that was added again whose fate the scheduler has to report.

        For each of them, call :meth:`report_started` with the pid if it still runs, :meth:`report_exit` if it has ended, or
        :meth:`start_again` if it never existed. They are not children of this process; ``os.pidfd_open(pid)`` becomes readable
        when one ends. A host takes part again when all its processes are reported. If they are not within `reattach_timeout`, the
        host counts as lost.
        """
        with self._handle.use() as job:
            return [EarlierWorker(*earlier) for earlier in api.earlier_workers(job)]

    def start_again(self, worker: int) -> None:
        """Reports that an earlier worker never had a process. `start_worker` is called for it again.

        Args:
          worker: the worker's number.

        Raises:
          RendezvousError: it is not one of :meth:`earlier_workers`.
        """
        with self._handle.use() as job:
            api.call("start_again", job, api.uint64("worker", worker))

    def report_started(self, worker: int, pid: int) -> None:
        """Reports that a worker's process was started, or that an earlier worker's process still runs.

        Args:
          worker: the worker's number.
          pid: the process id.
        """
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
        """Reports that a worker's process has ended, or could not be started.

        Args:
          worker: the worker's number.
          returncode: as of ``subprocess.Popen``: -N if signal N killed it.
          core_dumped: whether it left a core dump.
          out_of_memory: whether it was killed because memory ran out.
          start_error: why it could not be started; "": it was started.
          last_output: its last lines on stderr, for the report of a failure.
          unknown_end: what is known instead of a returncode, e.g. of an earlier scheduler's process. It has failed unless it had
            finished.
        """
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
        """Lets a host leave an elastic job at the next commit, so that no step is lost.

        Args:
          host: the host's name.
          grace: the time in seconds after which its workers are stopped without a commit.
          reason: why, for messages.
        """
        with self._handle.use() as job:
            api.call("drain", job, api.text("host", host), api.seconds("grace", grace), api.shown(reason))

    def request_stop(self, reason: str = "", exit_code: int = 1, grace: float = 5) -> None:
        """Ends the job. Its workers get SIGTERM, and SIGKILL after `grace` seconds. A second call shortens the time.

        Args:
          reason: why, for messages.
          exit_code: the job's exit code.
          grace: the time in seconds.
        """
        with self._handle.use() as job:
            api.call(
                "request_stop", job, api.shown(reason), api.int32("exit_code", exit_code), api.seconds("grace", grace)
            )

    def describe(self) -> dict[str, Any]:
        """Returns the current state of the job: "state" (forming, running, resetting, done, failed), "world", "size", "hosts" with
        their "workers", and more; ``horovod/rendezvous.h`` lists all.
        """
        with self._handle.use() as job:
            described: dict[str, object] = json.loads(api.text_of("describe", job))
        return described

    def metrics(self) -> str:
        """Returns the metrics of this job in the Prometheus text format."""
        with self._handle.use() as job:
            return api.text_of("job_metrics", job)

    def remove(self) -> None:
        """Removes the job from the server, ended or not. No callback is called after that. Further calls do nothing.

        With a state directory, a job that has not ended stays there, to be added again, and its workers continue to train.
        Without one, the scheduler must stop the processes that it has started.

        Raises:
          RendezvousError: it is called from a callback.
        """
        self._handle.end(lambda job: api.call("remove_job", job))
        self._server._jobs.discard(self)


def _kept_job(ended: Optional[dict[str, Any]], min_np: int, max_np: int, **kept: Any) -> KeptJob:
    result = None if ended is None else Result(**ended)
    return KeptJob(min_np=min_np or None, max_np=max_np or None, result=result, **kept)


def _ignored(_: object) -> None:
    """Drops what a callback returns."""


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
    """Closes all servers at exit, because no thread of the library may call into an interpreter that has ended."""
    for server in list(_open_servers):
        server.close()
