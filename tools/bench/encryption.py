"""Times what --encrypt-data costs: the same jobs over TCP in one host, with and without it, in turn.

    tools/bench/run encryption [--np 2 4] [--sizes 4B 64MB ...]

Columns, medians of all rounds: plain, tls: microseconds per sum of float32 in place on the slowest rank, or milliseconds of hvd.init() in it; GB/s: a
rank's buffer by that time; tls/plain: the median of the rounds' ratios. Shared memory is off, so that all goes over the loopback interface; across
hosts a slow network hides a part of the price.
"""

import json
import sys
import tempfile
from pathlib import Path

import bench
import start
from referee import JobFailed, Referee, median_ratio

SIZES = ["4B", "64KB", "1MB", "16MB", "64MB"]
VARIABLES = {
    "plain": {"HOROVOD_SHARED_MEMORY": "0"},
    "tls": {"HOROVOD_SHARED_MEMORY": "0", "HOROVOD_ENCRYPT_DATA": "1"},
}


def environments(args):
    return {name: {**bench.environment(args, args.torch[-1]), **variables} for name, variables in VARIABLES.items()}


def sums(args, ranks):
    table = bench.Table(
        args,
        f"allreduce over TCP, {ranks} processes, us",
        "size",
        ["plain", "tls", "GB/s plain", "GB/s tls", "tls/plain"],
    )
    with Referee() as referee:
        for name, environment in environments(args).items():
            worker = [
                bench.python_of(args.torch[-1]),
                str(bench.HERE / "worker_collectives.py"),
                "hvd",
                referee.socket_path,
                name,
            ]
            referee.start(name, bench.horovodrun(args, ranks) + worker, ranks, environment)
        for size in args.sizes or SIZES:
            try:
                times = referee.contest(f"allreduce float32 {bench.size_of(size)}", args.rounds, args.budget)
            except JobFailed as error:
                bench.fail(f"{size}: {error}")
            values = {name: 1e6 * bench.median(times[name]) for name in VARIABLES}
            values.update({f"GB/s {name}": bench.size_of(size) / bench.median(times[name]) / 1e9 for name in VARIABLES})
            values["tls/plain"] = median_ratio(times["tls"], times["plain"])
            table.row(size, values, rounds=args.rounds)


def init_seconds(args, ranks, environment):
    """Of the slowest rank, or None."""
    with tempfile.TemporaryDirectory(prefix="hvd-bench-") as directory:
        command = [
            *bench.horovodrun(args, ranks),
            bench.python_of(args.torch[-1]),
            str(bench.HERE / "worker_start.py"),
            "hvd",
            directory,
        ]
        if start.run(command, environment) is None:
            return None
        times = [json.loads(path.read_text()) for path in Path(directory).iterdir()]
    return max(rank["ready"] for rank in times) - max(rank["library"] for rank in times)


def init(args, ranks):
    table = bench.Table(args, f"hvd.init(), {ranks} processes, ms", "what", ["plain", "tls", "tls/plain"])
    times = {name: [] for name in VARIABLES}
    for _ in range(args.rounds):
        for name, environment in environments(args).items():
            times[name].append(init_seconds(args, ranks, environment))
    if None in times["plain"] + times["tls"]:
        bench.fail("not all jobs came up")
    values = {name: 1000 * bench.median(seconds) for name, seconds in times.items()}
    table.row(
        "from the last rank's call on",
        {**values, "tls/plain": median_ratio(times["tls"], times["plain"])},
        rounds=args.rounds,
    )


def main():
    parser = bench.parser(__doc__, rounds=9, budget=0.1)
    parser.add_argument("--sizes", nargs="+", metavar="SIZE", help="4B, 64KB, 1MB, ...")
    args = parser.parse_args()
    bench.begin(args)
    for ranks in args.np:
        sums(args, ranks)
        init(args, ranks)


if __name__ == "__main__":
    sys.exit(main())
