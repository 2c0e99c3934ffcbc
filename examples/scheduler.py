"""scheduler.py SLOTS "COMMAND" "URGENT COMMAND": two trainings on this machine's slots, with preemption.

The first is elastic and takes all slots. As soon as it trains, the urgent one comes and gets all
but one of them, each of which the first gives back at its next commit, without losing a step. It
gets them back when the urgent one has ended. A worker that dies is replaced.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading

from horovod import rendezvous

events = (
    queue.Queue()
)  # (function, arguments...) for the main thread: all that callbacks do is to put something in here


class Training:
    def __init__(self, server, name, command, np, min_np):
        self.name, self.command, self.result = name, command, None
        self.offered, self.held, self.noticed, self.processes = set(), set(), set(), {}
        self.job = server.add_job(
            np, min_np=min_np, max_np=np, id=name,
            start_worker=lambda worker: events.put((self.start, worker)),
            stop_worker=lambda worker, grace: events.put((self.stop, worker, grace)),
            host_free=lambda slot: events.put((self.held.discard, slot)),
            notice=lambda notice: events.put((self.noticed.add, notice["kind"])),
            finished=lambda result: events.put((setattr, self, "result", result)),
        )  # fmt: skip

    def offer(self, slots):
        self.offered, self.held = slots, self.held | slots  # it holds slots until they are free
        self.job.offer_slots([rendezvous.Host(slot, 1, "this-machine") for slot in sorted(slots)])
        print(f"{self.name}: may use {len(slots)} slots", flush=True)

    def start(self, worker):
        environment = {**os.environ, **worker.environment}
        process = subprocess.Popen("exec " + self.command, shell=True, env=environment, start_new_session=True)
        print(f"{self.name}: worker {worker.worker} is process {process.pid}", flush=True)
        self.processes[worker.worker] = process
        self.job.report_started(worker.worker, process.pid)
        threading.Thread(target=lambda: events.put((self.end, worker.worker, process.wait()))).start()

    def stop(self, worker, grace):
        self.kill(worker, signal.SIGTERM)
        later = threading.Timer(grace, lambda: events.put((self.kill, worker, signal.SIGKILL)))
        later.daemon = True
        later.start()

    def kill(self, worker, number):
        with contextlib.suppress(KeyError, ProcessLookupError):
            os.killpg(self.processes[worker].pid, number)

    def end(self, worker, returncode):
        self.kill(worker, signal.SIGKILL)  # what it has left behind
        del self.processes[worker]
        self.job.report_exit(worker, returncode)

    def over(self):
        return self.result is not None and not self.processes


def main(slots, command, urgent_command):
    everything, kept = {f"slot{n}" for n in range(slots)}, {"slot0"}
    with rendezvous.Server("127.0.0.1:0") as server:
        first = Training(server, "first", command, slots, 1)
        urgent = Training(server, "urgent", urgent_command, slots - 1, slots - 1)
        first.offer(everything)
        try:
            while not (first.over() and urgent.over()):
                function, *arguments = events.get()
                function(*arguments)
                if (
                    first.offered == everything
                    and not urgent.offered
                    and (first.result or "world_formed" in first.noticed)
                ):
                    first.offer(kept)
                if first.offered == kept and first.held <= kept and not urgent.offered:
                    urgent.offer(everything - kept)
                if urgent.over() and first.offered == kept and not first.over():
                    first.offer(everything)
        finally:
            for training in (first, urgent):
                for worker in training.processes:
                    training.kill(worker, signal.SIGKILL)
    for training in (first, urgent):
        print(f"{training.name}: {training.result.summary}")
    return first.result.exit_code or urgent.result.exit_code


if __name__ == "__main__":
    if len(sys.argv) != 4 or not sys.argv[1].isdecimal() or int(sys.argv[1]) < 2:
        print('usage: scheduler.py SLOTS "COMMAND" "URGENT COMMAND", with two slots or more', file=sys.stderr)
        sys.exit(2)
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
