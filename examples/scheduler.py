"""scheduler.py SLOTS "COMMAND" "URGENT COMMAND": two trainings on this machine's slots, with preemption.

The first is elastic and takes all slots. As soon as it trains, the urgent one arrives and gets all
slots but one: the first gives each of them back at its next commit, without losing a step, and gets
them again when the urgent one has ended. A worker that dies is replaced.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading

from horovod import rendezvous

calls = queue.Queue()  # (function, arguments...) for the main thread


def later(function):
    """Has the main thread call a function; for callbacks, which must return at once."""
    return lambda *arguments: calls.put((function, *arguments))


class Training:
    def __init__(self, server, name, command, np, min_np):
        self.name, self.command = name, ["sh", "-c", command]
        self.result, self.trains = None, False
        self.offered, self.held, self.processes = set(), set(), {}
        self.job = server.add_job(
            np, min_np=min_np, max_np=np, id=name, start_worker=later(self.start), stop_worker=later(self.stop),
            host_free=later(self.held.discard), notice=later(self.notice), finished=later(self.finish),
        )  # fmt: skip

    def offer(self, slots):
        self.offered = slots
        self.held |= slots  # until free() is called for them
        self.job.offer_slots([rendezvous.Host(slot, 1, "this-machine") for slot in sorted(slots)])
        print(f"{self.name}: may use {len(slots)} {'slot' if len(slots) == 1 else 'slots'}", flush=True)

    def start(self, worker):
        process = subprocess.Popen(self.command, env={**os.environ, **worker.environment}, start_new_session=True)
        print(f"{self.name}: worker {worker.worker} is process {process.pid}", flush=True)
        self.processes[worker.worker] = process
        self.job.report_started(worker.worker, process.pid)
        threading.Thread(target=lambda: later(self.end)(worker.worker, process.wait())).start()

    def stop(self, worker, grace):
        self.kill(worker, signal.SIGTERM)
        timer = threading.Timer(grace, later(self.kill), (worker, signal.SIGKILL))
        timer.daemon = True
        timer.start()

    def kill(self, worker, number):
        with contextlib.suppress(KeyError, ProcessLookupError):
            os.killpg(self.processes[worker].pid, number)

    def end(self, worker, returncode):
        self.kill(worker, signal.SIGKILL)  # the worker's descendants
        del self.processes[worker]
        self.job.report_exit(worker, returncode)

    def notice(self, notice):
        self.trains |= notice["kind"] == "world_formed"

    def finish(self, result):
        self.result, self.trains = result, True

    def over(self):
        return self.result is not None and not self.processes


def share(first, urgent, all_slots, kept):
    """The policy: sets which job may use which slots; called after every change."""
    if first.trains and first.offered == all_slots and not urgent.offered:
        first.offer(kept)
    if first.offered == kept and first.held <= kept and not urgent.offered:
        urgent.offer(all_slots - kept)
    if urgent.over() and first.offered == kept and not first.over():
        first.offer(all_slots)


def main(slots, command, urgent_command):
    all_slots = {f"slot{n}" for n in range(slots)}
    with rendezvous.Server("127.0.0.1:0") as server:
        first = Training(server, "first", command, slots, 1)
        urgent = Training(server, "urgent", urgent_command, slots - 1, slots - 1)
        first.offer(all_slots)
        try:
            while not (first.over() and urgent.over()):
                function, *arguments = calls.get()
                function(*arguments)
                share(first, urgent, all_slots, kept={"slot0"})
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
