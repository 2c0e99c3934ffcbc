"""Times the start of a job whose processes only init and shut down.

    tools/bench/run start [--np 2 8]

Columns, in milliseconds, medians of all rounds, in each of which every launcher has its turn:
  ready       from the launcher's start until the last process is past hvd.init(), init_process_group() or MPI_Init()
  torch       of which the interpreter's start and `import torch` take in that process; the interpreter's is that of as many `python -c pass` in the
              same round
  own         ready less torch: the time of the launcher and the library
  wall        until the launcher has ended
  launcher    until the launcher has ended when the processes are only `true`
  ready/X, wall/X   how many times as long as ours it takes
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import bench
from referee import median_ratio

DEADLINE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def launchers(args, ranks):
    """{name: (how to start a command, the command, its environment)}"""
    found = {}
    script = str(bench.HERE / "worker_start.py")
    for which in args.torch:
        python, version = bench.python_of(which), bench.TORCH[which].split()[1]
        found[f"horovodrun {version}"] = (
            bench.horovodrun(args, ranks),
            [python, script, "hvd"],
            bench.environment(args, which),
        )
        # 1.13 with Python 3.11 does not know what no redirection is.
        redirects = ["--redirects", "1", "--tee", "1"] if which == "debian" else []
        torchrun = [
            python,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node",
            str(ranks),
            "--master_port",
            "PORT",
            *redirects,
            "--no_python",
        ]
        found[f"torchrun {version}"] = torchrun, [python, script, "torch"], {**os.environ, "OMP_NUM_THREADS": "1"}
    original = bench.original_horovod(args, ranks)
    if original:
        launcher, python, environment = original
        found["horovod 0.28.1"] = launcher, [python, script, "hvd"], environment
    if bench.has_mpi(args):
        found["mpirun, C"] = bench.mpirun(ranks), [str(args.programs / "mpi_start")], None
    return found


def run(command, environment):
    """Returns the seconds until the command has ended, or None, after printing why, if it failed or did not end."""
    command = [free_port() if word == "PORT" else word for word in command]
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        job = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = job.wait(DEADLINE)
            seconds = time.monotonic() - start
        except subprocess.TimeoutExpired:
            code = f"nothing within {DEADLINE} s"
        finally:
            end_group(job)
        if code == 0:
            return seconds
        output.seek(0)
        bench.note(f"{' '.join(command)} ended with {code}: {output.read().decode(errors='replace').strip()[-200:]}")
        return None


def end_group(job):
    """Kills the remaining processes of the group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def start_once(launcher, command, environment, ranks):
    """One start: {column: seconds}, or None."""
    interpreter = run(bench.forked([command[0], "-c", "pass"], ranks), environment) if "python" in command[0] else 0
    with tempfile.TemporaryDirectory(prefix="hvd-bench-") as directory:
        begun = time.monotonic()
        wall = run([*launcher, *command, directory], environment)
        times = [json.loads(path.read_text()) for path in Path(directory).iterdir()]
    empty = run([*launcher, "true"], environment)
    if wall is None or empty is None or len(times) != ranks:
        return None
    last = max(times, key=lambda rank: rank["ready"])
    torch = interpreter + last["torch"] - last["python"] if "torch" in last else 0
    ready = last["ready"] - begun
    return {"ready": ready, "torch": torch, "own": ready - torch, "wall": wall, "launcher": empty}


def measure(args, ranks):
    """Returns {launcher: {column: [seconds]}} of the rounds in which all succeeded. The first round only warms up."""
    found = launchers(args, ranks)
    results = {name: {} for name in found}
    for number in range(args.rounds + 1):
        once = {name: start_once(*how, ranks) for name, how in found.items()}
        if number == 0:
            for name in [name for name in found if once[name] is None]:
                bench.note(f"without {name}")
                del found[name], results[name]
            continue
        if None in once.values():
            continue
        for name, columns in once.items():
            for column, seconds in columns.items():
                results[name].setdefault(column, []).append(seconds)
    if not results or not all(results.values()):
        bench.fail("there was no round in which all started")
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
