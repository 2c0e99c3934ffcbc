"""Common code of the benchmarks: command lines, starting a job of each library, and printing results."""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEV = ROOT / ".dev"

TORCH = {"debian": "torch 1.13", "pip": "torch 2.13"}
SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def parser(description, rounds, budget):
    """Returns a parser with the arguments that all benchmarks have."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument(
        "--np",
        type=int,
        nargs="+",
        default=[2],
        metavar="N",
        help="numbers of processes, one after the other (default: 2)",
    )
    result.add_argument(
        "--rounds", type=int, default=rounds, help=f"in each of which all libraries have their turn (default: {rounds})"
    )
    result.add_argument(
        "--budget",
        type=float,
        default=budget,
        metavar="SECONDS",
        help=f"of a library's turn, about (default: {budget:g})",
    )
    result.add_argument("--torch", nargs="+", choices=["debian", "pip"], default=["debian", "pip"],
                        help="whose torch.distributed: 1.13, 2.13 (default: both)")  # fmt: skip
    result.add_argument(
        "--stage",
        type=Path,
        default=DEV / "stage",
        metavar="DIRECTORY",
        help="with the horovod to measure (default: what tools/build made)",
    )
    result.add_argument(
        "--programs",
        type=Path,
        default=DEV / "bench",
        metavar="DIRECTORY",
        help="with the compiled programs (default: what tools/bench/run made)",
    )
    result.add_argument(
        "--horovod",
        type=Path,
        default=DEV / "venv-horovod",
        metavar="DIRECTORY",
        help="a virtual environment with Horovod 0.28.1, to compare with where there is one (default: .dev/venv-horovod)",
    )
    result.add_argument("--json", type=Path, metavar="FILE", help="append a JSON object per row to this file")
    return result


def size_of(text):
    """4B, 64KB, 1MB: bytes."""
    unit = text.lstrip("0123456789.")
    return int(float(text[: -len(unit)]) * SIZES[unit])


def python_of(which):
    return str(DEV / f"venv-{which}" / "bin" / "python")


def environment(args, which):
    """The environment for jobs of this project, with Debian's or pip's torch."""
    return {
        **os.environ,
        "PATH": f"{DEV}/venv-{which}/bin:{args.stage}/horovod/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(args.stage),
    }


def horovodrun(args, ranks):
    return [str(args.stage / "horovod" / "bin" / "horovodrun"), "-np", str(ranks)]


def original_horovod(args, ranks):
    """(How Horovod 0.28.1 starts a command, its Python, its environment), or None."""
    programs = args.horovod.resolve() / "bin"
    if not (programs / "horovodrun").exists():
        return None
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return (
        [str(programs / "horovodrun"), "-np", str(ranks)],
        str(programs / "python"),
        {**environment, "PATH": f"{programs}:{os.environ['PATH']}"},
    )


def mpirun(ranks):
    """Returns an mpirun command with default binding, transport and waiting, but allowed as root and with more ranks than cores."""
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)]


def forked(command, ranks):
    """Returns a job of plain processes: the command with each process's number in place of RANK."""
    script = " & ".join(" ".join(command).replace("RANK", str(rank)) for rank in range(ranks))
    return ["sh", "-c", f"{script} & wait"]


def has_mpi(args):
    """Returns whether Open MPI and the benchmark programs for it are available."""
    return shutil.which("mpirun") is not None and (args.programs / "mpi_start").exists()


def say(text=""):
    print(text, flush=True)


def note(text):
    """Prints a note to the reader of the table, e.g. that something was left out or failed."""
    print(f"  ({text})", flush=True)


def cache_line_trips(args):
    """Returns [(core, other core, microseconds for a round trip)]; takes about 10 ms per pair."""
    lines = subprocess.run([str(args.programs / "cache_line")], capture_output=True, text=True).stdout.splitlines()
    return [(core, other, float(trip)) for core, other, trip in map(str.split, lines)]


def nearness(trip):
    return "NEAR" if trip < 0.2 else "FAR"


def begin(args):
    """Prints the machine's properties: shared-memory results differ up to tenfold between near and far cores."""
    args.torch = [which for which in args.torch if Path(python_of(which)).exists()]
    if not args.torch:
        fail(f"there is no torch in {DEV}: tools/setup --torch pip brings one")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the jobs are ended
    near = [f"cores {a} and {b}: {trip:.3f} us {nearness(trip)}" for a, b, trip in cache_line_trips(args)]
    if original_horovod(args, 1) is None:
        note(f"without Horovod 0.28.1: there is no {args.horovod}")
    say(
        f"cache line there and back: {', '.join(near) or 'one core'}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


def emit(args, row):
    if args.json:
        with args.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


class Table:
    """A table that is printed row by row: each row has a label and numbers."""

    def __init__(self, args, title, first, titles):
        self._args, self._title, self._titles = args, title, titles
        say()
        say(title)
        self._first = first
        say(f"{first:<18}" + "".join(f"{column:>{self._width(column)}}" for column in titles) + "   cores")

    @staticmethod
    def _width(column):
        return max(10, len(column) + 2)

    def row(self, label, values, **extra):
        """values: {title: number or None}"""
        cells = []
        for column in self._titles:
            value = values.get(column)
            text = (
                "-"
                if value is None
                else f"{value:.2f}"
                if abs(value) < 10
                else f"{value:.1f}"
                if abs(value) < 100
                else f"{value:,.0f}"
            )
            cells.append(f"{text:>{self._width(column)}}")
        trip = max((trip for _, _, trip in cache_line_trips(self._args)), default=0)  # a virtual machine's cores move
        say(f"{label:<18}" + "".join(cells) + f"   {nearness(trip)}")
        emit(
            self._args,
            {
                "table": self._title,
                self._first: label,
                **{name: round(v, 4) for name, v in values.items() if v is not None},
                "cache_line_us": trip,
                **extra,
            },
        )


def median(values):
    return statistics.median(values) if values else None


def fail(text):
    sys.exit(f"{Path(sys.argv[0]).name}: {text}")
