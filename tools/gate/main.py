"""The order of the gate: ``main.py normal|unit|fast|all``, after tools/setup. Called by tools/test."""

import signal
import sys
from pathlib import Path

import table
from gate import Gate

_ROOT = Path(__file__).resolve().parent.parent.parent


def run(gate: Gate, kind: str) -> None:
    """Runs the suites of `kind`; without a package, not those that need one."""
    if kind == "unit":
        gate.run(table.unit(_ROOT))
        return
    lanes = [table.sources(_ROOT)]
    if kind != "fast":
        lanes.append([table.set_up(everything=kind == "all")])
    gate.side_by_side(*lanes)
    if not gate.has_passed("build") or (kind != "fast" and not gate.has_passed("frameworks and engines")):
        return
    gate.run(table.package(_ROOT))
    if kind == "fast":
        gate.run(table.local(_ROOT))
        return
    gate.side_by_side(table.local_lane(_ROOT), table.cluster_lane(_ROOT), table.engines_lane(_ROOT))
    if kind == "all":
        gate.run(table.rest(_ROOT))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(kind: str) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    # A background command of a shell ignores SIGINT, and so would the suites' jobs, whose tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gate = Gate(_ROOT)
    try:
        run(gate, kind)
        return gate.finish()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
