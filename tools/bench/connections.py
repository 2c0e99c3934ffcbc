"""Times large sums between two hosts over one connection and over as many as the backend chooses, on a network that caps each connection and on one
that does not.

    tools/bench/run connections [--sizes 64MB ...] [--caps 1 ...]

The hosts are those of `hierarchical`, with a process each. A cap is in Gbit/s for each connection and direction. Needs root. Columns: microseconds
per call on the slower rank, medians of all rounds; Gbit/s that each rank sends; the ratio is the median of the rounds' ratios.
"""

import os
import sys

import bench
from hierarchical import two_hosts
from referee import JobFailed, Referee, median_ratio

COLUMNS = ["one", "chosen", "one/chosen", "Gbit/s"]
BACKENDS = {"one": "tcp-single", "chosen": "tcp"}


def environment(args, cap):
    if not cap:
        return None
    return {**os.environ, "LD_PRELOAD": str(args.programs.resolve() / "paced"), "PACE_BYTES": str(int(cap * 1e9 / 8))}


def compare(args, table, referee, label, size):
    """One row."""
    what = f"allreduce float32 {bench.size_of(size)}"
    try:
        referee.contest(what, 1, 4 * args.budget)  # the choice needs some messages
        times = referee.contest(what, args.rounds, args.budget)
    except JobFailed as error:
        bench.fail(f"{label}: {error}")
    values = {name: 1e6 * bench.median(seconds) for name, seconds in times.items()}
    values["one/chosen"] = median_ratio(times["one"], times["chosen"])
    values["Gbit/s"] = (
        8 * bench.size_of(size) / bench.median(times["chosen"]) / 1e9
    )  # of two ranks each sends its half twice
    table.row(label, values, rounds=args.rounds)


def main():
    parser = bench.parser(__doc__, rounds=9, budget=0.5)
    parser.add_argument("--sizes", nargs="+", metavar="SIZE", default=["64KB", "1MB", "16MB", "64MB"])
    parser.add_argument("--caps", nargs="+", type=float, metavar="GBITS", default=[0, 1], help="0: none")
    args = parser.parse_args()
    bench.begin(args)
    table = bench.Table(args, "float32, 2 processes on 2 hosts", "operation", COLUMNS)
    for cap in args.caps:
        with two_hosts() as hosts, Referee() as referee:
            for name, backend in BACKENDS.items():
                command = [str(args.programs / "communicator_bench"), backend, "2", referee.socket_path, name, *hosts]
                referee.start(name, command, 2, environment(args, cap))
            for size in args.sizes:
                compare(args, table, referee, f"{size}, " + (f"{cap:g} Gbit/s each" if cap else "no cap"), size)


if __name__ == "__main__":
    sys.exit(main())
