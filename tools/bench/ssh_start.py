"""Times the start of a job over SSH on many hosts, and what it takes from the machine that starts it.

    tools/bench/run ssh_start [--hosts 10 50 200]

The hosts are test hosts on this machine (tests/cluster/netns.py), each with its own sshd, which needs root; each has one worker, the program `true`.
So this machine's cores do the work of all hosts. Columns:
  seconds     from the start of horovodrun to its end
  memory      MB of horovodrun at most (VmHWM)
  files       descriptors of horovodrun at most
  processes   its child processes at most: one ssh client for each host
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from process_watch import Watch

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "cluster")]


def measure(count, directory):
    from netns import Cluster
    from polling import poll_until

    names = [f"host{number}" for number in range(count)]
    with Cluster([*names, "launcher"], directory) as cluster:
        hosts = ",".join(f"{name}:1" for name in names)
        begin = time.monotonic()
        job = cluster["launcher"].start_command(["horovodrun", "-np", str(count), "-H", hosts, "true"])
        poll_until(
            (Path("/proc") / str(job.popen.pid) / "task" / str(job.popen.pid) / "children").read_text, "horovodrun"
        )
        watch = Watch(job.pid)
        code = job.wait()
        took = time.monotonic() - begin
        watch.stop()
        if code != 0:
            raise SystemExit(job.stderr.text)
    peak = watch.peak
    return f"{count:5} {took:8.1f} s {peak.memory:7.0f} MB {peak.files:7} {peak.children:10}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[10, 50, 200])
    args = parser.parse_args()
    print("hosts   seconds    memory   files  processes")
    for count in args.hosts:
        with tempfile.TemporaryDirectory(prefix="hvd-ssh-") as directory:
            print(measure(count, Path(directory)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
