"""A scheduler of one elastic job that may be killed and started again.

    resumed_scheduler.py STATE_DIR MAX_NP HOST:SLOTS,... [COMMAND]

Without a command agents start the processes; then the credentials are in STATE_DIR.token. With `-` for the folder nothing is kept.
It prints what the job has from an earlier scheduler, and ends with the job's exit code.
"""

import os
import queue
import select
import shlex
import signal
import subprocess
import sys
import threading

from horovod import rendezvous

events = queue.Queue()  # (function, arguments...) for the main thread


def say(*words):
    # In one write, from whatever thread.
    os.write(1, (" ".join(map(str, ["scheduler:", *words])) + "\n").encode())


class Workers:
    """The job's processes: children, and those of an earlier scheduler."""

    def __init__(self, command):
        self.command, self.job, self.pids = command, None, {}

    def start(self, worker):
        environment = {**os.environ, **worker.environment}
        process = subprocess.Popen(self.command, env=environment, start_new_session=True)
        self.pids[worker.worker] = process.pid
        self.job.report_started(worker.worker, process.pid)
        say("started", worker.worker, "as", process.pid)
        threading.Thread(target=lambda: events.put((self.end, worker.worker, process.wait(), "")), daemon=True).start()

    def stop(self, worker, grace):
        os.killpg(self.pids[worker], signal.SIGTERM)

    def end(self, worker, returncode, unknown_end):
        self.pids.pop(worker, None)
        self.job.report_exit(worker, returncode, unknown_end=unknown_end)

    def take_over(self):
        for earlier in self.job.earlier_workers():
            if earlier.pid == 0:
                self.job.start_again(earlier.worker)
                continue
            try:
                descriptor = os.pidfd_open(earlier.pid)
            except ProcessLookupError:
                self.end(earlier.worker, 0, "ended while no scheduler was there")
                continue
            say("found", earlier.worker, "as", earlier.pid, "on", earlier.host)
            self.pids[earlier.worker] = earlier.pid
            self.job.report_started(earlier.worker, earlier.pid)
            threading.Thread(target=self.watch, args=(earlier.worker, descriptor), daemon=True).start()

    def watch(self, worker, descriptor):
        select.select([descriptor], [], [])
        os.close(descriptor)
        events.put((self.end, worker, 0, "is no child of this scheduler, and has ended"))


def main(state_dir, max_np, hosts, command=None):
    workers = Workers(command and shlex.split(command))
    results = []
    slots = {name: int(count) for name, count in (host.split(":") for host in hosts.split(",") if host)}
    with rendezvous.Server(state_dir=None if state_dir == "-" else state_dir) as server:
        say("kept", [(kept.id, kept.problem) for kept in server.kept_jobs()])
        own = {"start_worker": None, "stop_worker": None}
        if command:
            own["start_worker"] = lambda worker: events.put((workers.start, worker))
            own["stop_worker"] = lambda worker, grace: events.put((workers.stop, worker, grace))
        job = workers.job = server.add_job(
            max_np, min_np=1, max_np=max_np, id="kept", **own,
            finished=lambda result: events.put((results.append, result)),
            notice=lambda notice: say(notice["kind"], notice["text"]),
        )  # fmt: skip
        with open(os.open(f"{state_dir}.token", os.O_CREAT | os.O_WRONLY, 0o600), "w") as token:
            token.write(job.credentials())
        workers.take_over()
        if slots:
            job.offer_slots(slots)
        say("serves at", server.addresses[0])
        while not results:
            function, *arguments = events.get()
            function(*arguments)
        job.remove()
    say("result:", results[0].summary)
    return results[0].exit_code


sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
