"""Measures what a large job asks of its daemon: memory, descriptors, processor time, and etcd's database.

    tools/bench/run sizing [--workers 100 1000 10000] [--stores memory folder etcd]

The daemon is a real horovod-rendezvousd. Its agents and workers are simulated by joins_bench: a connection for each agent (8 workers) and for
each worker, with TLS, as in a job. All join a first world, then two more, and end. Columns:
  agents      seconds until all agents are connected and have been told to start all workers
  world       seconds from the first join to the last answer: the first world, for which the workers connect, and the median of the later ones
  memory      MB of the daemon at most (VmHWM), and of each worker: (that less an idle daemon's) / workers
  files       descriptors of the daemon at most
  cpu         processor seconds of the daemon
  idle        its share of a core while all are connected and nobody calls
  store       MB on disk at the end: the state directory, or etcd's database
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from process_watch import Watch

PROGRAM = Path(os.environ["JOINS_BENCH"])
COLUMNS = "workers   store     agents  world first/later   memory  a worker   files      cpu     idle     store"
IDLE_SECONDS = 10


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_etcd(directory):
    """Returns the process, which listens, and its address."""
    clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    command = ["etcd", "--data-dir", str(directory / "etcd"), "--log-level", "error"]
    urls = ["--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers]
    names = ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
    process = subprocess.Popen([*command, *urls, *names], stderr=subprocess.DEVNULL)
    address = clients.removeprefix("http://")
    while process.poll() is None:
        health = subprocess.run(["etcdctl", "--endpoints", address, "endpoint", "health"], capture_output=True)
        if health.returncode == 0:
            return process, address
    raise SystemExit("etcd does not start")


def size_of(directory):
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / 1e6


def size_of_etcd(address):
    """Its database; its log is allocated beforehand, 64 MB a file."""
    status = subprocess.check_output(["etcdctl", "--endpoints", address, "endpoint", "status", "-w", "json"])
    return json.loads(status)[0]["Status"]["dbSize"] / 1e6


def seconds(text, what):
    found = re.search(rf"{what}\S*\s+([\d.]+) ms", text)
    if not found:
        raise SystemExit(f"joins_bench has printed nothing on '{what}':\n{text}")
    return float(found[1]) / 1000


def run_clients(command, watch):
    """Returns what they print, or None if they fail, and the daemon's share of a core while they are idle."""
    clients = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines, spent = [], 0.0
    for line in clients.stdout:
        lines.append(line)
        if line.startswith("  idle"):
            spent = watch.cpu() - spent  # at its begin, then at its end
    return ("".join(lines) if clients.wait() == 0 else None), spent / IDLE_SECONDS


def measure(workers, store, directory):
    """One line of the table."""
    token = directory / "token"
    options = ["--np", str(workers), "--min-np", str(workers), "--max-np", str(workers), "--start-timeout", "900"]
    etcd = None
    if store == "folder":
        options += ["--state-dir", str(directory / "state")]
    if store == "etcd":
        etcd, endpoint = start_etcd(directory)
        options += ["--etcd", endpoint, "--job", "sizing"]
    command = ["horovod-rendezvousd", "--listen", f"127.0.0.1:{free_port()}", "--token-file", str(token), *options]
    with open(directory / "log", "wb") as log:
        daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        address = daemon.stdout.readline().strip()
        if not address:
            raise SystemExit((directory / "log").read_text())
        watch = Watch(daemon.pid)
        clients = [PROGRAM, "--elastic", "--worlds", "2", "--idle", str(IDLE_SECONDS), "--connections", str(workers)]
        clients += ["--connect", address, "--token-file", token, str(workers)]
        text, idle = run_clients(clients, watch)
        watch.stop()
        if text is None:
            raise SystemExit((directory / "log").read_text()[-2000:])
        daemon.wait(60)
        stored = 0.0
        if store == "folder":
            stored = size_of(directory / "state")
        if store == "etcd":
            stored = size_of_etcd(endpoint)
    finally:
        for process in (daemon, etcd):
            if process and process.poll() is None:
                process.kill()
                process.wait()
    peak = watch.peak
    worlds = f"{seconds(text, 'first world'):8.2f} / {seconds(text, 'each further world, median'):.2f}"
    each = 1000 * (peak.memory - watch.first.memory) / workers
    return (
        f"{workers:7} {store:>7} {seconds(text, 'agents attach, and start'):8.1f} s {worlds} s {peak.memory:7.0f} MB {each:6.0f} KB "
        f"{peak.files:7} {peak.cpu:6.1f} s {100 * idle:6.1f} % {stored:6.1f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[100, 1000, 10000])
    stores = ["memory", "folder", "etcd"]
    parser.add_argument("--stores", nargs="+", choices=stores, default=stores)
    args = parser.parse_args()
    print(COLUMNS)
    for workers in args.workers:
        for store in args.stores:
            with tempfile.TemporaryDirectory(prefix="hvd-sizing-") as directory:
                print(measure(workers, store, Path(directory)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
