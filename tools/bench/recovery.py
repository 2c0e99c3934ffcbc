"""Measures how long training stands still when a worker is killed: from kill -9 to the survivors' next step, and to full size again.

    ./tools/run python tools/bench/recovery.py [--kills N] [--workers N] [--spares N] [--ballast-megabytes N] [--megabytes N]

Starts a job of its own on this machine (tests/cluster/scripts/elastic_train.py: a commit every step), kills a random worker each time
that the job is at full size, and prints medians and 99th percentiles in milliseconds, with what the time is made of:

  aborted   the survivors' collective has failed and their script knows it   (the death was noticed, the daemon told, all engines aborted)
  restored  they are back at the last commit
  formed    they are in the next world, and connected
  synced    they have the newest commit's state
  stepped   the next step is done

"full size" is the time until as many workers train as before; "switched in" how long the survivors stood still for the newcomer then, from the end of their
last step without it to the end of the first one with it.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from processes import Running  # noqa: E402
from training_log import TrainingLog  # noqa: E402

PHASES = ["aborted", "restored", "formed", "synced", "stepped"]


def start_job(args):
    slots = args.workers + args.spares
    command = ["horovodrun", "-np", str(args.workers), "--min-np", "1", "--max-np", str(args.workers), "-H", f"localhost:{slots}",
               "--max-failures", "100000/10m"]  # fmt: skip
    if args.spares:
        command += ["--spares", str(args.spares)]
    script = [sys.executable, str(ROOT / "tests/cluster/scripts/elastic_train.py"), "--epochs", "1000000", "--samples", "100000",
              "--step-seconds", str(args.step_seconds), "--megabytes", str(args.megabytes),
              "--ballast-megabytes", str(args.ballast_megabytes)]  # fmt: skip
    return Running(command + script, env={**os.environ, "OMP_NUM_THREADS": "1"})


def first_after(entries, time_of_kill, pid, **wanted):
    for entry in entries:
        if entry["time"] > time_of_kill and entry["pid"] == pid and all(entry.get(key) == value for key, value in wanted.items()):
            return entry["time"]
    return None


def phases_of(entries, killed_at, survivor, old_world):
    """Seconds from the kill to each phase, as this survivor says."""
    mine = [entry for entry in entries if entry["pid"] == survivor and entry["time"] > killed_at]
    world = next((entry for entry in mine if entry.get("world", 0) > old_world and "rank" in entry), None)
    times = {
        "aborted": first_after(mine, killed_at, survivor, event="restore"),
        "restored": first_after(mine, killed_at, survivor, event="restored"),
        "formed": first_after(mine, killed_at, survivor, event="reset"),
        "synced": world and world["time"],
        "stepped": world and first_after(mine, killed_at, survivor, event="stepped", world=world["world"]),
    }
    return {phase: at - killed_at for phase, at in times.items() if at is not None}


def wait_for_spares(spares):
    """Until horovodrun says that all of them are ready; they themselves say nothing."""
    while spares and f"{spares} ready to join" not in subprocess.run(["horovodrun", "status"], capture_output=True, text=True, check=True).stdout:
        time.sleep(0.2)


def standstill(entries, survivors, world):
    """The longest time between a survivor's last step before this world and its first one in it; None if the world came by the failure itself."""
    gaps = []
    for pid in survivors:
        steps = [entry for entry in entries if entry["pid"] == pid and "step" in entry]
        before = [entry["time"] for entry in steps if entry["world"] < world]
        after = [entry["time"] for entry in steps if entry["world"] == world]
        gaps.append(after[0] - before[-1])
    return max(gaps)


def kill_one(job, log, args):
    """One kill: the phases of the slowest survivor, the seconds until the job was at full size again, and the standstill then."""
    log.wait_until(lambda: log.trains_with(args.workers), 120, f"world of {args.workers}")
    wait_for_spares(args.spares)
    world = log.newest_world()
    steps = log.last_step()
    log.wait_until(lambda: log.last_step() > steps + 3, 120, "more steps")
    pids = log.process_ids()
    victim = pids.pop(random.randrange(args.workers))
    time.sleep(random.random() * (0.02 + args.step_seconds))  # any moment of a step
    killed_at = time.time()
    os.kill(victim, signal.SIGKILL)
    log.wait_until(lambda: log.newest_world() > world, 60, "next world")
    next_world = log.newest_world()

    def all_stepped():
        done = {entry["pid"] for entry in log.all("step") if entry["world"] >= next_world}
        return set(pids.values()) <= done

    log.wait_until(all_stepped, 60, "next step of all survivors")
    log.wait_until(lambda: log.trains_with(args.workers), 120, "full size")
    full_world = log.newest_world()
    survivors = set(pids.values())
    log.wait_until(lambda: survivors <= {entry["pid"] for entry in log.all("step") if entry["world"] >= full_world}, 60, "steps at full size")
    entries = log.all("time")
    full = max(entry["time"] for entry in entries if entry.get("world") == full_world and "rank" in entry) - killed_at
    phases = [phases_of(entries, killed_at, pid, world) for pid in pids.values()]
    slowest = max(phases, key=lambda p: p.get("stepped", 0))
    switched = standstill(entries, survivors, full_world) if full_world > next_world else None
    log.forget()
    return slowest, full, switched


def row(name, seconds):
    values = sorted(1000 * value for value in seconds)
    p99 = values[min(len(values) - 1, int(len(values) * 0.99))]
    return f"{name:>18}  {statistics.median(values):8.1f}  {p99:8.1f}  {values[-1]:8.1f}"


def table(results, fulls, standstills):
    lines = [f"{'ms after the kill':>18}  {'median':>8}  {'p99':>8}  {'worst':>8}"]
    for phase in PHASES:
        values = [result[phase] for result in results if phase in result]
        if values:
            lines.append(row(phase, values))
    lines.append(row("full size", fulls))
    if standstills:
        lines.append(row("switched in", standstills))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--spares", type=int, default=0)
    parser.add_argument("--megabytes", type=float, default=1.0, help="of parameters (default: 1)")
    parser.add_argument("--ballast-megabytes", type=int, default=0, help="of resident memory in each worker beside what torch needs")
    parser.add_argument("--step-seconds", type=float, default=0.01)
    parser.add_argument("--json", help="a file for the single results")
    args = parser.parse_args()
    job = start_job(args)
    log = TrainingLog(job.stdout)
    try:
        outcomes = [kill_one(job, log, args) for _ in range(args.kills)]
    except AssertionError as error:
        sys.exit(f"{str(error)[-3000:]}\n{job.stderr.text[-3000:]}")
    finally:
        job.popen.send_signal(signal.SIGINT)
        job.popen.wait(30)
    results, fulls = [outcome[0] for outcome in outcomes], [outcome[1] for outcome in outcomes]
    standstills = [outcome[2] for outcome in outcomes if outcome[2] is not None]
    print(f"{args.kills} kills, {args.workers} workers, {args.spares} spares, {args.megabytes:g} MB of parameters, "
          f"{args.ballast_megabytes} MB of ballast, a commit every step")
    print(table(results, fulls, standstills))
    if args.json:
        Path(args.json).write_text(json.dumps({"phases": results, "full": fulls}))


if __name__ == "__main__":
    main()
