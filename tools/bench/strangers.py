"""Times a job of two hosts with 2,000 idle strangers connected to each of its ports, next to one without strangers; they take turns.

    ./tools/run python tools/bench/strangers.py [--strangers 2000] [--rounds 5] [--seconds 5]

The hosts are test hosts (tests/cluster/netns.py), which needs root, with two processes each; data goes over TCP. The strangers connect to every
address of a port as soon as it listens, and send nothing; one whose connection is closed does not connect again. Rows, medians of all rounds, and
the median of the rounds' ratios:

  start, ms     from the start of horovodrun to the last process's call of hvd.init()
  hvd.init, ms  from then on to the last process's return from it
  4 B, us       a sum of float32, on the slowest process
  1 MB, us      the same

The strangers use the same cores as the job. On a machine with few cores that is a part of the times while a job forms.
"""

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "cluster")]

HOSTS = ["a", "b"]
LOCAL_RANKS = 2
SIZES = {"4 B, us": 1, "1 MB, us": 1 << 18}
CROWD = ROOT / "tests" / "cluster" / "scripts" / "strangers.py"


def work(args):
    """A process of the job: prints when it has joined, and, once its pipe has been opened, how long sums take."""
    import torch

    import horovod.torch as hvd

    called = time.time()
    hvd.init()
    print(json.dumps({"called": called, "joined": time.time()}), flush=True)
    if hvd.rank() == 0:
        args.work.read_bytes()
    hvd.barrier()
    result = {}
    for name, size in SIZES.items():
        ones = torch.ones(size)
        times = []
        end = time.perf_counter() + args.seconds / len(SIZES)
        over = torch.zeros(1)
        while not over.item():
            for _ in range(50):
                begin = time.perf_counter()
                hvd.allreduce_(ones, op=hvd.Max, name=name)
                times.append(time.perf_counter() - begin)
            over = hvd.allreduce(torch.tensor([float(time.perf_counter() > end)]), op=hvd.Max, name="over")
        result[name] = 1e6 * statistics.median(times)
    print(json.dumps(result), flush=True)
    hvd.shutdown()


def entries(text):
    return [json.loads(line[line.index("{") :]) for line in text.splitlines() if "{" in line]


def measure(cluster, crowd_size, args, go):
    """The rows' values of one job, which waits at the pipe `go`."""
    ports = {**dict.fromkeys(HOSTS, LOCAL_RANKS), "launcher": 1} if crowd_size else {}
    crowds = {
        host: cluster[host].start_command(["python", "-u", CROWD, str(crowd_size), str(ports[host])]) for host in ports
    }
    for crowd in crowds.values():
        crowd.stdout.wait_for("watching", 60)
    ranks = LOCAL_RANKS * len(HOSTS)
    begin = time.time()
    command = [
        "horovodrun",
        "-np",
        ranks,
        "-H",
        ",".join(f"{host}:{LOCAL_RANKS}" for host in HOSTS),
        "python",
        __file__,
        "--seconds",
        args.seconds,
        "--work",
        go,
    ]
    job = cluster["launcher"].start_command(command, env={"HOROVOD_SHARED_MEMORY": "0"})
    job.stdout.wait_for("joined", 120, count=ranks)
    for host, crowd in crowds.items():
        crowd.stdout.wait_for(rf"^{crowd_size} at \d+", 120, count=ports[host])
    go.write_bytes(b"go")
    if job.wait(120) != 0:
        sys.exit(f"the job failed:\n{job.everything()}")
    for crowd in crowds.values():
        crowd.signal(signal.SIGTERM)
        crowd.wait(30)
    said = entries(job.stdout.text)
    called, joined = (max(entry[what] for entry in said if what in entry) for what in ("called", "joined"))
    values = {name: max(entry[name] for entry in said if name in entry) for name in SIZES}
    return {"start, ms": 1000 * (called - begin), "hvd.init, ms": 1000 * (joined - called), **values}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strangers", type=int, default=2000, help="at each port (default: 2000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="of sums in each job (default: 5)")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work(args)

    from netns import Cluster

    found = {0: [], args.strangers: []}
    with (
        tempfile.TemporaryDirectory(prefix="hvd-bench-") as directory,
        Cluster([*HOSTS, "launcher"], Path(directory)) as cluster,
    ):
        go = Path(directory) / "go"
        os.mkfifo(go)
        for _ in range(args.rounds):
            for crowd_size, results in found.items():
                results.append(measure(cluster, crowd_size, args, go))
    print(f"{'':<14}{'alone':>12}{'strangers':>12}{'ratio':>8}")
    for row in found[0][0]:
        alone, among = ([result[row] for result in results] for results in found.values())
        ratio = statistics.median(b / a for a, b in zip(alone, among))
        print(f"{row:<14}{statistics.median(alone):>12.1f}{statistics.median(among):>12.1f}{ratio:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
