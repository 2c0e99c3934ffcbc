"""Does harm to a real job at random for a given time, and checks that no commit() that had returned is gone.

    tools/faults/run [--seconds N] [--seed N] [--kind local|joined] [--workers N] [--checkpoints]

local: horovodrun with up to N workers on this machine. joined: a daemon with --state-dir and two agents of N/2 slots each. Faults
are kills of workers (one, two within 50 ms, all, a worker and then its replacement), stopped workers, and in joined jobs kills of
agents and of the daemon, drains (some with a second SIGTERM), and joins. The workers' logs are the proof (check.py): after each
change of the world the first step follows the newest commit() that had returned, unless the agents of all workers that had it were
killed; no number is given twice; nothing stands still for more than 15 s. Prints what is wrong, and how much was done.

The last line names the directory with the logs, which is removed if all is well. Exit code 1: something is wrong.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from check import Fault, check, read
from job import JoinedJob, LocalJob, kill


class Harm:
    """Draws faults and records them."""

    def __init__(self, job, rng):
        self.job = job
        self.faults = []
        self._rng = rng
        self._back_at = {}  # agents that are to join again, and when

    def _note(self, kind, host=""):
        self.faults.append(Fault(time.monotonic(), kind, host))

    def once(self):
        """One fault, or two close together."""
        kinds = [self._kill_workers] * 6 + [self._kill_replacement] * 2 + [self._stop_worker]
        if isinstance(self.job, JoinedJob):
            kinds += [self._drain] * 2 + [self._kill_agent, self._kill_daemon]
        for _ in range(self._rng.choice([1, 1, 2])):
            self._rng.choice(kinds)()
            time.sleep(self._rng.uniform(0, 0.05))

    def mend(self):
        """Brings back the agents whose time has come."""
        for host, when in list(self._back_at.items()):
            if time.monotonic() >= when and self.job.agents[host].poll() is not None:
                del self._back_at[host]
                self.job.join(host)
                self._note("agent joins", host)

    def _kill_workers(self):
        workers = self.job.workers()
        self._rng.shuffle(workers)
        for pid, host in workers[: self._rng.choice([1, 1, 1, 2, 3, 9])]:
            if kill(pid):
                self._note("worker killed", host)
            time.sleep(self._rng.choice([0, 0.005, 0.02]))

    def _kill_replacement(self):
        """Kills all workers of a host, and what has been started there for them."""
        host = self._rng.choice(self.job.hosts())
        for _ in range(2):
            for pid, there in self.job.workers():
                if there == host and kill(pid):
                    self._note("worker killed", host)
            time.sleep(self._rng.uniform(0.2, 4))

    def _stop_worker(self):
        workers = self.job.workers()
        if not workers:
            return
        pid, host = self._rng.choice(workers)
        if kill(pid, signal.SIGSTOP):
            self._note("worker stopped", host)
            time.sleep(self._rng.uniform(0.1, 3))
            kill(pid, signal.SIGCONT)

    def _kill_agent(self):
        host = self._rng.choice(self.job.hosts())
        for pid in self.job.agent_pids(host):
            self._note("agent killed", host)
            kill(pid)
        self._back_at.setdefault(host, time.monotonic() + self._rng.uniform(0.5, 3))

    def _drain(self):
        host = self._rng.choice(self.job.hosts())
        agents = self.job.agent_pids(host)
        is_last = not any(self.job.agent_pids(other) for other in self.job.hosts() if other != host)
        for pid in agents:
            # Without another agent and without checkpoints nobody can take its commits over.
            self._note("last host drained" if is_last else "drain", host)
            kill(pid, signal.SIGTERM)
        if agents and self._rng.random() < 0.3:
            time.sleep(self._rng.uniform(0.05, 1))
            for pid in agents:
                kill(pid, signal.SIGTERM)
        self._back_at.setdefault(host, time.monotonic() + self._rng.uniform(0.5, 5))

    def _kill_daemon(self):
        self._note("daemon killed")
        self.job.daemon.kill()
        self.job.daemon.wait()
        time.sleep(self._rng.uniform(0, 2))
        self.job.start_daemon()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=["local", "joined"], default="local")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--checkpoints", action="store_true", help="a checkpoint every 20 commits")
    return parser.parse_args()


def main():
    args = parse()
    directory = Path(tempfile.mkdtemp(prefix="hvd-faults-"))
    rng = random.Random(args.seed)
    job = (LocalJob if args.kind == "local" else JoinedJob)(directory, args.checkpoints, args.workers)
    harm = Harm(job, rng)
    end = time.monotonic() + args.seconds
    try:
        while time.monotonic() < end and job.is_alive():
            # Mostly long enough for new processes to begin, so that there is something to lose.
            pause = time.monotonic() + rng.choice([0.05, 1, 3, 6, 10])
            while time.monotonic() < pause or not any(job.logs.iterdir()):
                harm.mend()
                time.sleep(0.02)
            harm.once()
        ended = not job.is_alive()
    finally:
        job.close()
    entries = read(job.logs)
    wrong = check(entries, harm.faults)
    if ended:
        wrong.append("the job has ended before its time")
    for line in wrong:
        print(line)
    steps = max((entry.step for entry in entries), default=0)
    print(f"{len(harm.faults)} faults, {steps} steps, {len(wrong)} wrong | {directory}")
    if not wrong:
        shutil.rmtree(directory)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
