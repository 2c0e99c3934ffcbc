"""Measures how long training stands still when a worker is killed or raises an exception: from that to the survivors' next step, and to full size
again.

    ./tools/run python tools/bench/recovery.py [--raise] [--kills N] [--workers N] [--hosts N] [--spares N] [--ballast-megabytes N...] [--megabytes N]

For each size of ballast it starts a separate job (tests/cluster/scripts/elastic_train.py: a commit every step), kills a random worker whenever the
job is at full size, and prints one table in milliseconds after the kill. The phases are those of the survivor that was last to do its next step:

  detected     the agent has noticed the death, and the daemon has ended the world     (horovodrun --event-log: world_broken)
  told         the survivor's runtime has received the end of the world                (its debug log: broken)
  aborted      its collective has failed, with an exception in its script
  restored     it is back at the last commit
  left         it has freed all resources of the old world                             (debug log: left)
  formed       it has received the members of the next world                           (debug log: has N ranks)
  connected    the next world's collectives can begin                                  (debug log: connected)
  training     the training function is called again, with the newest commit's state
  stepped      the next step is done
  exited       the kernel has taken its memory back, and the process is gone: its slot is free   (event log: worker_failed)
  full size    as many workers train as before
  but start    the same, less the start of the new process until its script can train (imports, model, ballast; without hvd.init())
  switched in  how long the survivors then stood still for the newcomer: from the last step without it to the first one with it

n is the number of kills with such a time: a survivor may notice the death in its collective before the daemon's message, and a newcomer may be in the
next world at once. If any other time is missing after a kill, the benchmark ends with an error, after the table of the kills before.

With --raise the worker raises an exception instead, which ends it: times count from the exception.

Without --hosts all workers run on this machine, else on that many test hosts (tests/cluster/netns.py), which needs root. The memory must hold the
ballast of each worker, and that of one more while the memory of a dead one is being freed.
"""

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TRAIN = ROOT / "tests" / "cluster" / "scripts" / "elastic_train.py"
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "cluster")]

from netns import Cluster  # noqa: E402
from recovery_log import EventLog, NotFound, Story  # noqa: E402

PHASES = ["detected", "told", "aborted", "restored", "left", "formed", "connected", "training", "stepped"]
NEEDED = {"detected", "aborted", "restored", "formed", "connected", "training", "stepped"}


class LocalJob:
    """On this machine. A context manager: runs while it is open."""

    def __init__(self, args, ballast, directory):
        self.story = Story()
        self.events = EventLog(directory / "events")
        self._command = command_of(args, ballast, self.hosts(args), directory)

    def hosts(self, args):
        return f"localhost:{args.workers + args.spares}"

    def __enter__(self):
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.story.read(self._process.stdout)
        self.story.read(self._process.stderr)
        return self

    def __exit__(self, *exception):
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def real_pid(self, process):
        return process[1]


class ClusterJob(LocalJob):
    """A job on test hosts, started from one more of them. Its output comes through named pipes, not through those that tests read."""

    def __init__(self, args, ballast, directory):
        self._directory = directory
        self._names = [f"host{number}" for number in range(args.hosts)]
        super().__init__(args, ballast, directory)

    def hosts(self, args):
        slots = -(-(args.workers + args.spares) // args.hosts)
        return ",".join(f"{name}:{slots}" for name in self._names)

    def __enter__(self):
        self._cluster = Cluster([*self._names, "launcher"], self._directory)
        self._cluster.__enter__()
        pipes = [self._directory / name for name in ("stdout", "stderr")]
        for pipe in pipes:
            os.mkfifo(pipe)
        redirect = ["sh", "-c", 'exec "$@" >"$0/stdout" 2>"$0/stderr"', self._directory]
        self._running = self._cluster["launcher"].start_command(
            [*redirect, *self._command], env={"OMP_NUM_THREADS": "1"}
        )
        for pipe in pipes:
            self.story.read(open(pipe, errors="replace"))
        return self

    def __exit__(self, *exception):
        self._running.signal(signal.SIGINT)
        self._running.wait(30)
        self._cluster.close()

    def real_pid(self, process):
        """The process id on this machine, of a process that logs the id on its host."""
        name, pid = process
        for real in self._cluster[name].find(TRAIN.name):
            numbers = re.search(r"^NSpid:(.*)$", Path(f"/proc/{real}/status").read_text(), re.M).group(1).split()
            if int(numbers[-1]) == pid:
                return real
        raise NotFound(f"no process {pid} on {name}")


def command_of(args, ballast, hosts, directory):
    command = ["horovodrun", "-np", str(args.workers), "--min-np", "1", "--max-np", str(args.workers), "-H", hosts,
               "--max-failures", "100000/10m", "--log-level", "DEBUG", "--event-log", str(directory / "events")]  # fmt: skip
    if args.spares:
        command += ["--spares", str(args.spares)]
    script = [sys.executable, str(TRAIN), "--epochs", "1000000", "--samples", "100000", "--step-seconds", str(args.step_seconds),
              "--megabytes", str(args.megabytes), "--ballast-megabytes", str(ballast)]  # fmt: skip
    return command + script + ["--raise-on-signal"] * args.raises


def resident_megabytes(pid):
    return int(re.search(r"^VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M).group(1)) / 1024


class Kill:
    """One kill, and what became of it: `times` in seconds after it, by name."""

    def __init__(self, job, args):
        self._job, self._story = job, job.story
        self._size = args.workers
        self._raised = args.raises
        self._begin(args)
        self._do(args)
        self._wait()
        self.times = self._find_times()
        if not args.spares:
            self.times["but start"] = self.times["full size"] - self._start_seconds()

    def _begin(self, args):
        story = self._story
        story.wait_for(lambda: story.full_world(self._size), f"world of {self._size}")
        story.wait_for(lambda: story.spares() >= args.spares, f"{args.spares} spares")
        steps = story.last_step
        story.wait_for(lambda: story.last_step > steps + 3, "more steps")
        self._world = story.wait_for(lambda: story.full_world(self._size), f"world of {self._size}")
        self._survivors = dict(story.members[self._world])
        self._victim = self._survivors.pop(random.randrange(self._size))
        self._job.events.new_entries()
        story.forget()

    def _do(self, args):
        pid = self._job.real_pid(self._victim)
        self.megabytes = resident_megabytes(pid)
        time.sleep(random.random() * (0.02 + args.step_seconds))  # any moment of a step
        self._at = time.time()
        self._story.killed.add(self._victim)
        os.kill(pid, signal.SIGUSR1 if args.raises else signal.SIGKILL)
        if args.raises:
            self._at = self._story.wait_for(lambda: self._story.times.get((self._victim, "raised")), "exception")

    def _wait(self):
        story, survivors = self._story, self._survivors.values()
        story.wait_for(
            lambda: all(story.stepped_after(process, self._world) for process in survivors),
            "next step of all survivors",
        )

        def full():
            world = story.full_world(self._size)
            return (
                world > self._world
                and all((process, world) in story.first_steps for process in story.members[world].values())
                and world
            )

        self._full = story.wait_for(full, f"steps in a world of {self._size}")

    def _find_times(self):
        self._events = self._job.events.new_entries()
        last = max(
            self._survivors.values(),
            key=lambda process: self._story.first_steps[process, self._story.stepped_after(process, self._world)],
        )
        times = self._phases_of(last)
        if not self._raised:  # else the log has it before that
            times["exited"] = next((entry["time"] for entry in self._events if entry["kind"] == "worker_failed"), None)
        times["full size"] = max(self._story.world_times[self._full, rank, "training"] for rank in range(self._size))
        times = {name: at - self._at for name, at in times.items() if at is not None}
        missing = NEEDED - times.keys()
        if missing:
            raise NotFound(f"nothing said when a survivor of world {self._world} was {', '.join(sorted(missing))}")
        if self._full > self._story.stepped_after(last, self._world):
            times["switched in"] = max(self._standstill_of(process) for process in self._survivors.values())
        return times

    def _phases_of(self, process):
        story, world = self._story, self._story.stepped_after(process, self._world)
        old_rank = next(rank for rank, member in self._survivors.items() if member == process)
        rank = next(rank for rank, member in story.members[world].items() if member == process)
        broken = [
            entry["time"] for entry in self._events if entry["kind"] == "world_broken" and entry["world"] == self._world
        ]
        # The two streams of a process need not come in order of time.
        story.wait_for(lambda: (world, rank, "connected") in story.world_times, "word that the next world is connected")
        return {
            "detected": broken[0] if broken else None,
            "told": story.world_times.get((self._world, old_rank, "broken")),
            "aborted": story.times.get((process, "restore")),
            "restored": story.times.get((process, "restored")),
            "left": story.world_times.get((self._world, old_rank, "left")),
            "formed": story.world_times.get((world, rank, "has")),
            "connected": story.world_times[world, rank, "connected"],
            "training": story.world_times[world, rank, "training"],
            "stepped": story.first_steps[process, world],
        }

    def _standstill_of(self, process):
        before = max(when for (p, world), when in self._story.last_steps.items() if p == process and world < self._full)
        return self._story.first_steps[process, self._full] - before

    def _start_seconds(self):
        """The seconds that the newcomer took to be ready, without hvd.init()."""
        newcomer = next(
            process for process in self._story.members[self._full].values() if process not in self._survivors.values()
        )
        ready, init_seconds = self._story.ready[newcomer]
        started = [
            entry["time"] for entry in self._events if entry["kind"] == "worker_started" and entry["time"] < ready
        ]
        if not started:
            raise NotFound("nothing said when the newcomer was started")
        return ready - started[-1] - init_seconds


def measure(args, ballast):
    """The kills that went well, and what was wrong with the next one, or None."""
    kills = []
    with (
        tempfile.TemporaryDirectory() as directory,
        (ClusterJob if args.hosts else LocalJob)(args, ballast, Path(directory)) as job,
    ):
        try:
            while len(kills) < args.kills:
                kills.append(Kill(job, args))
        except NotFound as error:
            return kills, f"kill {len(kills) + 1} with {ballast} MB of ballast: {error}"
    return kills, None


def cells(seconds):
    if not seconds:
        return f"{0:>5}{'-':>9}{'-':>9}{'-':>9}"
    values = sorted(1000 * value for value in seconds)
    p99 = values[min(len(values) - 1, int(len(values) * 0.99))]
    return f"{len(values):>5}{statistics.median(values):9.1f}{p99:9.1f}{values[-1]:9.1f}"


def table(args, outcomes):
    aims = {
        "stepped": "50" if args.hosts else "20",
        "full size": "1000" if args.spares else "",
        "but start": "300",
        "switched in": "100",
    }
    rows = [*PHASES, "exited", "full size", *([] if args.spares else ["but start"]), "switched in"]
    titles = []
    for kills in outcomes:
        resident = statistics.median(kill.megabytes for kill in kills) if kills else 0
        titles.append(f"{f'{resident:,.0f} MB resident':>32}")
    where = f"{args.hosts} hosts" if args.hosts else "one machine"
    what = f"{args.workers} workers on {where}, {args.spares} spares, {args.megabytes:g} MB of parameters, a commit every step"
    lines = [f"{what}; ms after the {'exception' if args.raises else 'kill'}",
             " " * 20 + "".join(titles), f"{'':>12}{'aim':>8}" + f"{'n':>5}{'median':>9}{'p99':>9}{'worst':>9}" * len(outcomes)]  # fmt: skip
    for name in rows:
        columns = "".join(cells([kill.times[name] for kill in kills if name in kill.times]) for kills in outcomes)
        lines.append(f"{name:<12}{aims.get(name, ''):>8}{columns}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="for each size of ballast")
    parser.add_argument(
        "--raise", dest="raises", action="store_true", help="have workers raise an exception, instead of killing them"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--hosts", type=int, default=0, help="test hosts that the workers run on (default: this machine)"
    )
    parser.add_argument("--spares", type=int, default=0)
    parser.add_argument("--megabytes", type=float, default=1.0, help="of parameters (default: 1)")
    parser.add_argument(
        "--ballast-megabytes",
        type=int,
        nargs="+",
        default=[0],
        help="of resident memory in each worker beside what torch needs",
    )
    parser.add_argument("--step-seconds", type=float, default=0.01)
    parser.add_argument("--json", help="a file for the single results, in seconds")
    args = parser.parse_args()
    outcomes, problems = [], []
    for ballast in args.ballast_megabytes:
        kills, problem = measure(args, ballast)
        outcomes.append(kills)
        problems += [problem] if problem else []
    print(table(args, outcomes))
    if args.json:
        Path(args.json).write_text(json.dumps([[kill.times for kill in kills] for kills in outcomes]))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
