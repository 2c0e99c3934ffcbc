"""Times the start of a job whose processes only init and shut down.

    tools/bench/run start [--np 2 8]

Columns, in milliseconds, medians of all rounds, in each of which every launcher has its turn:
  ready       from the launcher's start until the last process is past hvd.init(), init_process_group() or MPI_Init()
  torch       of which the interpreter's start and `import torch` take in that process; the interpreter's is that of as many `python -c pass` in the same round
  own         ready less torch: what the launcher and the library take
  wall        until the launcher has ended
  launcher    until the launcher has ended when the processes are only `true`
  ready/X, wall/X   how many times as long as ours it takes
"""

import json
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import bench
from referee import median_ratio

DEADLINE = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def launchers(args, ranks):
    """{name: (how to start a command, the command, its environment, which kind of processes)}"""
    found = {}
    script = str(bench.HERE / "worker_start.py")
    for which in args.torch:
        python, version = bench.python_of(which), bench.TORCH[which].split()[1]
        found[f"horovodrun {version}"] = bench.horovodrun(args, ranks), [python, script, "hvd"], bench.environment(args, which)
        torchrun = [python, "-m", "torch.distributed.run", "--nproc_per_node", str(ranks), "--master_port", "PORT", "--no_python"]
        found[f"torchrun {version}"] = torchrun, [python, script, "torch"], {**os.environ, "OMP_NUM_THREADS": "1"}
    original = bench.original_horovod(args, ranks)
    if original:
        launcher, python, environment = original
        found["horovod 0.28.1"] = launcher, [python, script, "hvd"], environment
    if bench.has_mpi(args):
        found["mpirun, C"] = bench.mpirun(ranks), [str(args.programs / "mpi_start")], None
    return found


def run(command, environment):
    """Seconds until it has ended. A failure ends the benchmark, with what the command said."""
    command = [free_port() if word == "PORT" else word for word in command]
    start = time.monotonic()
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        bench.fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout.decode(errors='replace')[-2000:]}")
    return seconds


def start_once(launcher, command, environment, ranks, interpreter):
    """One start: {column: seconds}"""
    with tempfile.TemporaryDirectory(prefix="hvd-bench-") as directory:
        begun = time.monotonic()
        wall = run([*launcher, *command, directory], environment)
        times = [json.loads(path.read_text()) for path in Path(directory).iterdir()]
    if len(times) != ranks:
        bench.fail(f"{launcher[0]} started {len(times)} processes instead of {ranks}")
    last = max(times, key=lambda rank: rank["ready"])
    torch = interpreter + last["torch"] - last["python"] if "torch" in last else 0
    ready = last["ready"] - begun
    return {"ready": ready, "torch": torch, "own": ready - torch, "wall": wall, "launcher": run([*launcher, "true"], environment)}


def measure(args, ranks):
    """{launcher: {column: [seconds]}}; the first round only warms up."""
    results = {}
    found = launchers(args, ranks)
    for number in range(args.rounds + 1):
        for name, (launcher, command, environment) in found.items():
            interpreter = run(bench.forked([command[0], "-c", "pass"], ranks), environment) if "mpi" not in name else 0
            once = start_once(launcher, command, environment, ranks, interpreter)
            for column, seconds in once.items():
                if number > 0:
                    results.setdefault(name, {}).setdefault(column, []).append(seconds)
    return results


def main():
    parser = bench.parser(__doc__, rounds=5, budget=0)
    args = parser.parse_args()
    bench.begin(args)
    for ranks in args.np:
        columns = ["ready", "torch", "own", "wall", "launcher"]
        table = bench.Table(args, f"start of {ranks} processes, ms", "launcher", [*columns, "ready/X", "wall/X"])
        results = measure(args, ranks)
        ours = [name for name in results if name.startswith("horovodrun")]
        for name, times in results.items():
            version = name.split()[1]
            mine = results[next((name for name in ours if name.endswith(version)), ours[-1])] if ours else times
            values = {column: 1000 * bench.median(times[column]) for column in columns}
            values.update({f"{column}/X": median_ratio(times[column], mine[column]) for column in ("ready", "wall")})
            table.row(name, values, rounds=args.rounds)


if __name__ == "__main__":
    main()
