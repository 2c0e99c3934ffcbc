"""Breaks one line at a time and asks whether a test notices.

    tools/mutation/run [--area NAME] [--count N] [--seed N]

Takes COUNT random mutants of the sources of an area (default: all areas), tries each in a copy of the committed sources, and
runs the area's tests: those of tools/test --unit and the simulation. Prints each mutant that no test noticed, and how many were
noticed. A mutant that does not compile does not count. Exit code 1: fewer than nine of ten were noticed; 2: the tests fail without
any mutant.
"""

import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mutants import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
DEV = ROOT / ".dev" / "mutation"
TREE = DEV / "tree"
LONGEST = 1800.0  # seconds for the tests of a mutant, which may hang


class Area(NamedTuple):
    """Sources of one concern."""

    sources: Sequence[str]  # patterns of files
    tests: Sequence[str]  # Bazel's targets, or patterns of files in python/tests
    is_python: bool = False


_CPP = ("//:unit_tests", "//tests/simulation/...")
_ELASTIC = (
    "test_commit*",
    "test_elastic*",
    "test_handover*",
    "test_object*",
    "test_torch_*checkpoint*",
    "test_replicas*",
    "test_torch_corruption*",
    "test_torch_parts*",
    "test_torch_store*",
    "test_torch_*state*",
    "test_torch_elastic*",
)
AREAS = {
    "membership": Area(["rendezvous/membership/**/*.cc", "rendezvous/policy/*.cc", "rendezvous/placement/*.cc"], _CPP),
    "negotiation": Area(["worker_runtime/negotiation/**/*.cc"], _CPP),
    "journal": Area(["rendezvous/journal/*.cc", "rendezvous/snapshot/*.cc"], _CPP),
    "peers": Area(["collectives/peer/*.cc", "collectives/tcp/*.cc", "collectives/links/*.cc"], _CPP),
    "shm": Area(["collectives/shm/**/*.cc"], _CPP),
    "elastic": Area(["python/horovod/elastic/*.py"], _ELASTIC, is_python=True),
}


class Place(NamedTuple):
    """A mutant of a file of an area."""

    file: Path  # in the tree
    mutant: Mutant
    area: Area


def places_of(area: Area) -> list[Place]:
    """Returns all mutants of the area's sources, without its tests."""
    files = sorted({file for pattern in area.sources for file in TREE.glob(pattern)})
    return [
        Place(file, mutant, area)
        for file in files
        if not file.stem.endswith(("_test", "_bench", "_fuzz", "_testing"))
        for mutant in mutants_of(file.read_text(), file.suffix == ".py")
    ]


def copy_sources() -> None:
    """Makes TREE the committed sources, without what earlier runs left."""
    subprocess.run(["git", "-C", ROOT, "worktree", "prune"], check=True)
    if not TREE.exists():
        TREE.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "-q", "--detach", TREE, "HEAD"], check=True)
    head = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    subprocess.run(["git", "-C", TREE, "checkout", "-q", "--force", "--detach", head], check=True)


def copy_stage() -> None:
    """Makes the package of DEV/stage that of .dev/stage, with the Python sources of the tree."""
    built = ROOT / ".dev" / "stage" / "horovod"
    copied = DEV / "stage" / "horovod"
    shutil.rmtree(copied, ignore_errors=True)
    copied.mkdir(parents=True)
    for file in built.iterdir():
        source = file.resolve()
        is_source = source.is_relative_to(ROOT / "python")
        (copied / file.name).symlink_to(TREE / source.relative_to(ROOT) if is_source else source)


def run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Runs a command in the tree, and returns its exit code. One that hangs has failed; .dev/mutation/log has the last output."""
    with open(DEV / "log", "w") as log:
        try:
            done = subprocess.run(
                command,
                cwd=TREE,
                env={**os.environ, **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return 1
    return done.returncode


def bazel(what: str, *arguments: str) -> int:
    """Runs Bazel in the tree, with an output base of its own."""
    return run(["bazel", f"--output_base={DEV}/base", what, "--noshow_progress", *arguments], {})


def test(area: Area) -> str:
    """Returns "passed", "failed", or "invalid": it does not compile."""
    if area.is_python:
        files = sorted({file for pattern in area.tests for file in TREE.glob(f"python/tests/{pattern}.py")})
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *map(str, files)]
        return "failed" if run(command, {"PYTHONPATH": str(DEV / "stage")}) else "passed"
    if bazel("build", *area.tests):
        return "invalid"
    return "failed" if bazel("test", "--notest_keep_going", *area.tests) else "passed"


def try_one(place: Place) -> str:
    """Breaks the line, asks, and mends it."""
    whole = place.file.read_text()
    lines = whole.split("\n")
    lines[place.mutant.line - 1] = place.mutant.after
    place.file.write_text("\n".join(lines))
    try:
        return test(place.area)
    finally:
        place.file.write_text(whole)


def show(place: Place, seconds: float) -> None:
    """Prints a mutant that nobody noticed."""
    where = place.file.relative_to(TREE)
    print(
        f"unnoticed after {seconds:.0f} s: {where}:{place.mutant.line}\n  - {place.mutant.before.strip()}\n  + {place.mutant.after.strip()}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", choices=sorted(AREAS), help="one area (default: all)")
    parser.add_argument("--count", type=int, default=20, help="of mutants that compile (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    copy_sources()
    copy_stage()
    areas = [AREAS[arguments.area]] if arguments.area else list(AREAS.values())
    if any(test(area) != "passed" for area in areas):
        print(f"the tests fail without a mutant, see {DEV}/log", file=sys.stderr)
        return 2
    places = [place for area in areas for place in places_of(area)]
    print(f"{len(places)} mutants", flush=True)
    random.Random(arguments.seed).shuffle(places)
    results: collections.Counter[str] = collections.Counter()
    for place in places:
        if results["failed"] + results["passed"] >= arguments.count:
            break
        begin = time.monotonic()
        result = try_one(place)
        results[result] += 1
        if result == "passed":
            show(place, time.monotonic() - begin)
    tried = results["failed"] + results["passed"]
    print(f"{results['failed']} of {tried} noticed; {results['invalid']} did not compile")
    return 0 if results["failed"] * 10 >= tried * 9 else 1


if __name__ == "__main__":
    sys.exit(main())
