"""Times the collectives of two hosts with two processes each: shared memory in the hosts and TCP across, beside TCP alone and Gloo alone.

    tools/bench/run hierarchical [--np 4] [--sizes 64MB ...]

The hosts are network namespaces that a veth pair joins; they end with this process, killed or not. Needs root. Columns: microseconds per call on
the slowest rank as a C++ caller of the communicator sees them, medians of all rounds; the ratios are medians of the rounds' ratios.
"""

import contextlib
import subprocess
import sys

import bench
from referee import JobFailed, Referee, median_ratio

SIZES = ["4B", "1KB", "64KB", "1MB", "16MB", "64MB", "256MB"]
OTHERS = [
    ("allgather", "64MB"),
    ("broadcast", "64MB"),
    ("alltoall", "64MB"),
    ("reducescatter", "64MB"),
    ("allgather", "64KB"),
    ("broadcast", "64KB"),
    ("alltoall", "64KB"),
    ("reducescatter", "64KB"),
]
COLUMNS = ["hierarchical", "tcp", "gloo", "tcp/hier.", "gloo/tcp"]
ADDRESSES = ["10.77.1.1", "10.77.1.2"]
HOLD = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"]


def in_host(holder, *command):
    subprocess.run(["nsenter", f"--net=/proc/{holder.pid}/ns/net", *command], check=True)


@contextlib.contextmanager
def two_hosts():
    """Yields each host as communicator_bench wants it: the file of its network namespace and its address."""
    with contextlib.ExitStack() as stack:
        holders = []
        for _ in ADDRESSES:
            holder = stack.enter_context(subprocess.Popen(HOLD, stdout=subprocess.PIPE, text=True))
            stack.callback(holder.kill)
            if holder.stdout.readline() != "ready\n":
                bench.fail("no network namespace to be had; it needs root")
            holders.append(holder)
        subprocess.run(["ip", "link", "add", "data", "netns", str(holders[0].pid), "type", "veth",
                        "peer", "name", "data", "netns", str(holders[1].pid)], check=True)  # fmt: skip
        for holder, address in zip(holders, ADDRESSES):
            in_host(holder, "ip", "address", "add", f"{address}/24", "dev", "data")
            in_host(holder, "ip", "link", "set", "data", "up")
            in_host(holder, "ip", "link", "set", "lo", "up")
        yield [f"/proc/{holder.pid}/ns/net={address}" for holder, address in zip(holders, ADDRESSES)]


def compare(args, table, referee, label, what):
    """One row."""
    try:
        times = referee.contest(what, args.rounds, args.budget)
    except JobFailed as error:
        bench.fail(f"{label}: {error}")
    values = {name: 1e6 * bench.median(seconds) for name, seconds in times.items()}
    values["tcp/hier."] = median_ratio(times["tcp"], times["hierarchical"])
    values["gloo/tcp"] = median_ratio(times["gloo"], times["tcp"])
    table.row(label, values, rounds=args.rounds)


def main():
    parser = bench.parser(__doc__, rounds=9, budget=0.2)
    parser.set_defaults(np=[4])
    parser.add_argument("--sizes", nargs="+", metavar="SIZE", help="of allreduce only: 4B, 64KB, 1MB, ...")
    args = parser.parse_args()
    bench.begin(args)
    for ranks in args.np:
        with two_hosts() as hosts, Referee() as referee:
            for name in COLUMNS[:3]:
                referee.start(
                    name,
                    [str(args.programs / "communicator_bench"), name, str(ranks), referee.socket_path, name, *hosts],
                    ranks,
                )
            table = bench.Table(args, f"float32, {ranks} processes on 2 hosts", "operation", COLUMNS)
            for size in args.sizes or SIZES:
                compare(args, table, referee, f"allreduce {size}", f"allreduce float32 {bench.size_of(size)}")
            for operation, size in [] if args.sizes else OTHERS:
                compare(args, table, referee, f"{operation} {size}", f"{operation} float32 {bench.size_of(size)}")


if __name__ == "__main__":
    sys.exit(main())
