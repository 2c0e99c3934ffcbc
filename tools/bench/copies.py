"""Measures what copies of commits on another host cost the training: steps with and without copies, in turn.

    tools/bench/copies.py [--megabytes N] [--seconds S] [--steps N] [--turns N] [--mbit N]

An elastic job of one worker, which computes for about S seconds and commits N megabytes in each step. A second agent, which stands for
another machine, keeps copies of the commits, or it is not there. Both run on this machine: so the cost contains that of the host that
receives. One line of JSON: seconds a step (medians of all turns, the first step of each left out) with and without, their ratio (the median
of the turns'), and milliseconds of processor time that each agent takes for a step with copies beyond one without: `source` is beside the
training, `keeper` on the other host.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--megabytes", type=int, default=100)
parser.add_argument("--seconds", type=float, default=1.0)
parser.add_argument("--steps", type=int, default=8, help="in a turn")
parser.add_argument("--turns", type=int, default=5)
parser.add_argument("--mbit", type=int, default=1000)
parser.add_argument("--in-job", action="store_true", help=argparse.SUPPRESS)
args = parser.parse_args()


def train():
    """The worker: prints how long each of its steps took."""
    import torch

    import horovod.torch as hvd

    hvd.init()
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(args.megabytes * 250000 // 64)) for _ in range(64)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    matrix = torch.randn(512, 512)
    started = time.perf_counter()
    for _ in range(20):
        matrix @ matrix
    rounds = max(1, round(args.seconds / (time.perf_counter() - started) * 20))

    @hvd.elastic.run
    def run(state):
        while True:
            start = time.perf_counter()
            for _ in range(rounds):
                matrix @ matrix
            state.batch += 1
            state.commit()
            print(f"step {state.batch} {time.perf_counter() - start}", flush=True)

    run(hvd.elastic.TorchState(model, optimizer, batch=0))


def processor_ms(pid):
    """Returns the processor time that the agent has used so far, without its worker."""
    agents, total = [pid], 0
    while agents:
        process = Path("/proc", str(agents.pop()))
        if (process / "comm").read_text().strip() not in ("horovod-guard", "horovod-agent"):
            continue
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
        agents += [
            int(child) for task in (process / "task").iterdir() for child in (task / "children").read_text().split()
        ]
    return total


class Job:
    def __init__(self, directory):
        self._directory = directory
        self._steps = []
        self._ended = False
        self._arrived = threading.Condition()
        self._daemon = subprocess.Popen(
            ["horovod-rendezvousd", "--listen", "127.0.0.1:0", "--np", "1", "--min-np", "1", "--max-np", "1",
             "--token-file", directory / "token", "--event-log", directory / "events"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        while not (found := re.match(r"(\S+:\d+)$", self._daemon.stdout.readline())):
            pass
        self._address = found.group(1)
        self.source = self._agent("one", stdout=subprocess.PIPE)
        threading.Thread(target=self._read, daemon=True).start()

    def _agent(self, name, **output):
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--in-job"]
        return subprocess.Popen(
            ["horovod-agent", "--join", self._address, "--token-file", self._directory / "token", "--host", name,
             "--machine", name, "--slots", "1", "--", *command],
            env={**os.environ, "OMP_NUM_THREADS": "1", "HOROVOD_COMMIT_COPY_MBIT": str(args.mbit)},
            stderr=subprocess.DEVNULL, text=True, **output,
        )  # fmt: skip

    def _read(self):
        for line in self.source.stdout:
            if found := re.search(r"step \d+ (\S+)$", line):
                with self._arrived:
                    self._steps.append(float(found.group(1)))
                    self._arrived.notify_all()
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    def steps(self, count):
        """Of the next so many."""
        with self._arrived:
            first = len(self._steps)
            self._arrived.wait_for(lambda: self._ended or len(self._steps) >= first + count)
            if self._ended:
                sys.exit("the job has ended: see what its worker says with --in-job")
            return self._steps[first : first + count]

    def start_keeper(self):
        kept = self.copies()
        keeper = self._agent("two", stdout=subprocess.DEVNULL)
        while self.copies() == kept:  # it says so with the first copy
            self.steps(1)
        return keeper

    def measured(self, *agents):
        """Seconds a step, and of each agent the processor's milliseconds a step."""
        self.steps(1)
        before = [processor_ms(agent.pid) for agent in agents]
        seconds = statistics.median(self.steps(args.steps))
        return seconds, *((processor_ms(agent.pid) - was) / args.steps for agent, was in zip(agents, before))

    def copies(self):
        return (self._directory / "events").read_text().count('"commits_kept"')

    def end(self):
        self._daemon.send_signal(signal.SIGTERM)
        self._daemon.wait()
        self.source.wait()


def main():
    plain, copied = [], []
    with tempfile.TemporaryDirectory() as directory:
        job = Job(Path(directory))
        job.steps(3)
        for _ in range(args.turns):
            plain.append(job.measured(job.source))
            keeper = job.start_keeper()
            copied.append(job.measured(job.source, keeper))
            keeper.send_signal(signal.SIGTERM)
            keeper.wait()
        job.end()
    figures = {
        "commit_MB": args.megabytes,
        "mbit": args.mbit,
        "step_s": round(statistics.median(step for step, _ in plain), 4),
        "step_with_copies_s": round(statistics.median(step for step, *_ in copied), 4),
        "ratio": round(statistics.median(with_[0] / without[0] for with_, without in zip(copied, plain)), 4),
        "source_ms": round(statistics.median(with_[1] - without[1] for with_, without in zip(copied, plain)), 1),
        "keeper_ms": round(statistics.median(keeper for *_, keeper in copied), 1),
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(figures), flush=True)


train() if args.in_job else main()
