"""Measures how long training stands still when a worker is killed: from kill -9 to the survivors' next step, and to full size again.

    ./tools/run python tools/bench/recovery.py [--kills N] [--workers N] [--spares N] [--ballast-megabytes N] [--megabytes N]

Starts a job of its own on this machine (tests/cluster/scripts/elastic_train.py: a commit every step), kills a random worker each time
that the job is at full size, and prints medians and 99th percentiles in milliseconds, with what the time is made of:

  aborted   the survivors' collective has failed and their script knows it   (the death was noticed, the daemon told, all engines aborted)
  restored  they are back at the last commit
  formed    they are in the next world, and connected
  synced    they have the newest commit's state
  stepped   the next step is done
"""

import argparse
import json
import os
import random
import signal
import statistics
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


def kill_one(job, log, args):
    """One kill: the phases of the slowest survivor, and the seconds until the job was at full size again."""
    log.wait_until(lambda: log.trains_with(args.workers), 120, f"world of {args.workers}")
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
    entries = log.all("time")
    full = max(entry["time"] for entry in entries if entry.get("world") == full_world and "rank" in entry) - killed_at
    phases = [phases_of(entries, killed_at, pid, world) for pid in pids.values()]
    slowest = max(phases, key=lambda p: p.get("stepped", 0))
    log.forget()
    return slowest, full


def table(results, fulls):
    lines = [f"{'ms after the kill':>18}  {'median':>8}  {'p99':>8}  {'worst':>8}"]
    for phase in PHASES:
        values = sorted(1000 * result[phase] for result in results if phase in result)
        if values:
            p99 = values[min(len(values) - 1, int(len(values) * 0.99))]
            lines.append(f"{phase:>18}  {statistics.median(values):8.1f}  {p99:8.1f}  {values[-1]:8.1f}")
    values = sorted(1000 * full for full in fulls)
    lines.append(f"{'full size':>18}  {statistics.median(values):8.1f}  {values[int(len(values) * 0.99)]:8.1f}  {values[-1]:8.1f}")
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
    print(f"{args.kills} kills, {args.workers} workers, {args.spares} spares, {args.megabytes:g} MB of parameters, "
          f"{args.ballast_megabytes} MB of ballast, a commit every step")
    print(table(results, fulls))
    if args.json:
        Path(args.json).write_text(json.dumps({"phases": results, "full": fulls}))


if __name__ == "__main__":
    main()
