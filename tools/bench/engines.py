"""Measures what an engine adds to a job, and how long an elastic job on it stands still when a worker is killed and when one is added.

    tools/bench/run engines [--engines plain spark ray dask] [--rounds N] [--kills N]

For each engine, with 2 workers on this machine and the engine already running:
  run          the median seconds of a job that only calls hvd.init() and hvd.barrier(): a call of horovod.spark.run(), of horovod.dask.run(), or of
               RayExecutor from start() to shutdown()
  horovodrun   the same script under `horovodrun -np 2`; both take turns
  more         the difference of the two
  killed       milliseconds from kill -9 to the survivor's next step: the median, and the longest. Spark's executor is killed (its JVM), Ray's actor,
               and Dask's worker process
  joined       milliseconds between the survivor's last step alone and the first step with the worker that replaces the killed one: the same
The training of the last two makes a commit in every step, and has nothing else to do. The row "plain" is horovodrun itself, with which the engines'
last two columns compare.
"""

import argparse
import contextlib
import os
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TRAIN = ROOT / "tests" / "cluster" / "scripts" / "elastic_train.py"
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "engines")]

from training_log import TrainingLog  # noqa: E402

DEADLINE = 120  # seconds
POLL = 0.5  # reading the logs takes processor time from the workers that are measured
NOTHING = "import horovod.numpy as hvd\nhvd.init()\nhvd.barrier()\n"


def nothing():
    import horovod.numpy as hvd

    hvd.init()
    hvd.barrier()


def train(*arguments):
    """Runs elastic_train.py in a worker of an engine."""
    sys.argv = ["elastic_train.py", *arguments]
    runpy.run_path(str(TRAIN), run_name="__main__")


class Spark:
    def __init__(self, directory):
        from pyspark.sql import SparkSession

        from spark_cluster import QUIET, StandaloneCluster, environment

        os.environ.update(environment())
        self._cluster = StandaloneCluster(directory)
        builder = SparkSession.builder.master(self._cluster.url)
        for name, value in {**QUIET, "spark.driver.host": "127.0.0.1", "spark.task.maxFailures": "1000"}.items():
            builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("OFF")

    def run(self, fn):
        import horovod.spark

        horovod.spark.run(fn, num_proc=2, verbose=0)

    def run_elastic(self, *arguments):
        import horovod.spark

        with open(os.devnull, "w") as nowhere:
            horovod.spark.run_elastic(
                train, arguments, num_proc=2, min_num_proc=1, max_num_proc=2, verbose=0, stdout=nowhere, stderr=nowhere
            )

    def kill(self, pid):
        from spark_cluster import executor_of

        os.kill(executor_of(pid)[0], signal.SIGKILL)

    def close(self):
        self._session.stop()
        self._cluster.close()


class OfProcesses:
    """An engine whose workers are ordinary processes of this machine, and are killed as such."""

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)


class Plain(OfProcesses):
    """horovodrun itself, which the engines are compared with."""

    def __init__(self, directory):
        self._script = directory / "nothing.py"
        self._script.write_text(NOTHING)

    def run(self, fn):
        subprocess.run(["horovodrun", "-np", "2", sys.executable, str(self._script)], check=True)

    def run_elastic(self, *arguments):
        command = ["horovodrun", "-np", "2", "--min-np", "1", "--max-np", "2", "-H", "localhost:2"]
        subprocess.run([*command, sys.executable, str(TRAIN), *arguments], check=True, capture_output=True)

    def close(self):
        pass


class Ray(OfProcesses):
    def __init__(self, directory):
        os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
        import ray

        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)

    def run(self, fn):
        from horovod.ray import RayExecutor

        executor = RayExecutor(RayExecutor.create_settings(), num_workers=2)
        executor.start()
        executor.run(fn)
        executor.shutdown()

    def run_elastic(self, *arguments):
        from horovod.ray import RayExecutor

        executor = RayExecutor(RayExecutor.create_settings(), min_workers=1, max_workers=2)
        executor.start()
        executor.run(train, args=arguments)

    def close(self):
        import ray

        ray.shutdown()


class Dask(OfProcesses):
    def __init__(self, directory):
        import distributed

        self._cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(directory), silence_logs=50
        )
        self._client = distributed.Client(self._cluster)

    def run(self, fn):
        import horovod.dask

        horovod.dask.run(fn, verbose=0)

    def run_elastic(self, *arguments):
        import horovod.dask

        with open(os.devnull, "w") as nowhere:
            horovod.dask.run_elastic(
                train, arguments, min_num_workers=1, max_num_workers=2, verbose=0, stdout=nowhere, stderr=nowhere
            )

    def close(self):
        self._client.close()
        self._cluster.close()


ENGINES = {"plain": Plain, "spark": Spark, "ray": Ray, "dask": Dask}


def seconds_of(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def time_runs(engine, rounds, directory):
    """Medians: (seconds of the engine's run, of horovodrun's)."""
    script = directory / "nothing.py"
    script.write_text(NOTHING)
    command = ["horovodrun", "-np", "2", sys.executable, str(script)]
    engine.run(nothing)
    times = [
        (seconds_of(lambda: engine.run(nothing)), seconds_of(lambda: subprocess.run(command, check=True)))
        for _ in range(rounds)
    ]
    return [statistics.median(column) for column in zip(*times)]


def wait_for(directory, condition):
    """Waits until `condition(log)` holds, and returns the log."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        with contextlib.suppress(AssertionError):
            log = TrainingLog.of_files(directory.glob("*-*"))
            if condition(log):
                return log
        time.sleep(POLL)
    sys.exit(f"the training does not go on: {directory}")


def kill_workers(engine, kills, directory):
    """Kills workers of an elastic training, each when the job is at full size. Returns its log, and the times of the kills."""
    end = directory / "end"
    arguments = ["--log-dir", directory, "--end-file", end, "--epochs", 10**6, "--samples", 8, "--step-seconds", 0.001]
    training = threading.Thread(target=engine.run_elastic, args=list(map(str, arguments)))
    training.start()
    killed_at = []
    whole = 0  # the newest world of two so far
    for _ in range(kills + 1):
        log = wait_for(
            directory, lambda log, before=whole: log.newest_world() > before and log.trains_with(2) and has_stepped(log)
        )
        whole = log.newest_world()
        if len(killed_at) == kills:
            break
        victim = log.process_ids()[1]
        killed_at.append(time.time())
        engine.kill(victim)
    end.touch()
    training.join(DEADLINE)
    return TrainingLog.of_files(directory.glob("*-*")), killed_at


def has_stepped(log):
    return any(step["world"] == log.newest_world() for step in log.all("step"))


def standstills(log, killed_at):
    """Milliseconds: (from each kill to the next step, before the first step of each world with a newcomer)."""
    steps = {}
    for entry in log.all("samples"):
        steps.setdefault(entry["world"], []).append(entry["time"])
    worlds, sizes = sorted(steps), log.worlds()
    after_kill = [
        1000 * min(time for world in worlds for time in steps[world] if time > at and sizes[world][0] == 1) - 1000 * at
        for at in killed_at
    ]
    joins = [
        1000 * (min(steps[larger]) - max(steps[smaller]))
        for smaller, larger in zip(worlds, worlds[1:])
        if sizes[smaller][0] < sizes[larger][0]
    ]
    return after_kill, joins


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=sorted(ENGINES), default=list(ENGINES))
    parser.add_argument("--rounds", type=int, default=5, help="of runs (default: 5)")
    parser.add_argument("--kills", type=int, default=5, help="of workers (default: 5)")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{'':8}{'run':>8}{'horovodrun':>12}{'more':>8}{'killed':>14}{'joined':>14}")
    for name in args.engines:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            logs = directory / "logs"
            logs.mkdir()
            engine = ENGINES[name](directory)
            try:
                run, horovodrun = time_runs(engine, args.rounds, directory)
                killed, joined = standstills(*kill_workers(engine, args.kills, logs))
            finally:
                engine.close()
        shown = [f"{statistics.median(times):.0f}, {max(times):.0f}" for times in (killed, joined)]
        print(f"{name:8}{run:8.2f}{horovodrun:12.2f}{run - horovodrun:8.2f}{shown[0]:>14}{shown[1]:>14}", flush=True)


if __name__ == "__main__":
    main()
