"""Measures what the runtime costs a worker that does nothing: processor time and resident memory.

    ./tools/run horovodrun -np 2 python tools/bench/footprint.py

Memory: resident set after hvd.init() and a first allreduce, less that after `import torch`. Processor: share of a core that the process
used while it slept, all of it the runtime's threads.
"""

import argparse
import time

import torch


def resident_mb() -> float:
    """Resident memory of this process in MB, as the kernel counts it."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc/self/status")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to stay idle (default: 5)")
    args = parser.parse_args()
    tensor = torch.ones(1024) + 1
    before = resident_mb()
    import horovod.torch as hvd  # late: its memory is what is measured

    hvd.init()
    hvd.allreduce_(tensor, name="warm")
    added = resident_mb() - before
    cpu, wall = time.process_time(), time.perf_counter()
    time.sleep(args.seconds)
    idle = 100 * (time.process_time() - cpu) / (time.perf_counter() - wall)
    worst = hvd.allreduce(torch.tensor([added, idle], dtype=torch.float64), op=hvd.Max, name="worst")
    if hvd.rank() == 0:
        print(
            f"worst of {hvd.size()} ranks: {worst[0]:.1f} MB of resident memory added, "
            f"{worst[1]:.3f} % of a core while idle for {args.seconds:g} s"
        )


if __name__ == "__main__":
    main()
