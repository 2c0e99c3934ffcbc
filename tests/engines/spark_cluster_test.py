"""horovod.spark on a standalone cluster of two executors, whose processes are killed."""

import os
import re
import signal
import sys
import zipfile
from pathlib import Path

import pytest

import horovod.spark
from elastic_run import ElasticRun
from processes import Running, command_line, pids_with, wait_until_none
from spark_cluster import QUIET, SPARK, StandaloneCluster, environment, executor_of
from training import train
from training_log import TrainingLog

MARK = "HOROVOD_SPARK_CLUSTER_TEST"
SAMPLES = 240
LIMITS = {"num_proc": 2, "min_num_proc": 1, "max_num_proc": 2, "elastic_timeout": 120}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    directory = tmp_path_factory.mktemp("spark")
    saved = dict(os.environ)
    os.environ.update(environment(**{MARK: str(directory)}))
    cluster = StandaloneCluster(directory, SPARK_WORKER_OPTS="-Dspark.decommission.enabled=true")
    yield cluster
    cluster.close()
    assert wait_until_none(jobs) == []
    os.environ.clear()
    os.environ.update(saved)


def jobs():
    """The processes of Horovod's that came from this cluster."""
    return [pid for pid in pids_with(f"{MARK}={os.environ[MARK]}".encode()) if "horovod" in command_line(pid)]


@pytest.fixture
def session(cluster, request):
    """`request.param`: further settings."""
    from pyspark.sql import SparkSession

    restart = horovod.spark.conf.SPARK_CONF_ALWAYS_RESTART_FAILED_TASK
    settings = {**QUIET, **dict([restart]), "spark.driver.host": "127.0.0.1", "spark.decommission.enabled": "true"}
    builder = SparkSession.builder.master(cluster.url)
    for name, value in [*settings.items(), *getattr(request, "param", ())]:
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    assert wait_until_none(jobs) == []


def places():
    import horovod.torch as hvd

    hvd.init()
    return hvd.rank(), hvd.local_rank(), hvd.local_size(), hvd.cross_size()


def test_executors_of_a_machine_share_it_and_one_that_dies_ends_a_static_job(session):
    assert horovod.spark.run(places, num_proc=2, verbose=0) == [(0, 0, 2, 1), (1, 1, 2, 1)]

    def fn():
        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            os.kill(executor_of(os.getpid())[0], signal.SIGKILL)
        hvd.barrier()
        hvd.barrier()

    with pytest.raises(RuntimeError, match="host task1 was lost"):
        horovod.spark.run(fn, num_proc=2, verbose=0)
    assert len(horovod.spark.run(places, num_proc=2, verbose=0)) == 2


class Training:
    """An elastic training on the cluster, which runs until the test ends it. `log` follows its output."""

    def __init__(self, directory, **limits):
        self._directory = directory
        arguments = ["--epochs", 1000, "--samples", SAMPLES, "--log-dir", directory, "--end-file", directory / "end"]
        self.run = ElasticRun(horovod.spark.run_elastic, train, *arguments, **{**LIMITS, **limits})
        self.log = TrainingLog(self.run.stdout.stream)
        self.log.wait_until(lambda: self.log.trains_with(2) and self.log.last_step() > 3, 300, "two ranks train")

    def end(self):
        """The results, and how many steps were rolled back. Every sample counts once in every epoch."""
        (self._directory / "end").touch()
        results = self.run.results()
        # Files, since what a killed process has printed may not have come here.
        written = TrainingLog.of_files(self._directory.glob("*-*"))
        return results, written.check_samples(SAMPLES, 1 + max(step["epoch"] for step in written.all("samples")))


def test_lost_executor_is_replaced_and_survivors_continue(session, tmp_path):
    training = Training(tmp_path)
    log = training.log
    pids, world = log.process_ids(), log.newest_world()
    executor, _ = executor_of(pids[1])
    os.kill(executor, signal.SIGKILL)
    log.wait_until(lambda: log.has_trained_with(1, after=world), 300, "the survivor trains alone")
    log.wait_until(lambda: log.trains_with(2), 300, "Spark's replacement has joined")
    assert pids[0] in log.process_ids().values(), "the survivor was not restarted"
    results, _ = training.end()
    assert [rank for rank, _ in results] == [0, 1]


def test_decommissioned_executor_is_drained(cluster, session, tmp_path):
    training = Training(tmp_path)
    log = training.log
    pids = log.process_ids()
    jvm, _ = executor_of(pids[1])
    worker = next(one for one in cluster.workers if f"PPid:\t{one.pid}\n" in Path(f"/proc/{jvm}/status").read_text())
    worker.signal(signal.SIGPWR)
    log.wait_until(lambda: log.trains_with(1), 300, "the other trains alone")
    assert list(log.process_ids().values()) == [pids[0]]
    cluster.start_worker()
    log.wait_until(lambda: log.trains_with(2), 300, "Spark has started the task again")
    _, rolled_back = training.end()
    assert rolled_back == 0, "a drained executor costs no step"


def test_slots_that_come_are_used_up_to_the_limit(cluster, session, tmp_path):
    training = Training(tmp_path, max_num_proc=3)
    log = training.log
    first = set(log.process_ids().values())
    third = cluster.start_worker()
    log.wait_until(lambda: log.trains_with(3), 300, "the new executor's task has joined")
    three = log.process_ids()
    assert first < set(three.values()), "no worker was restarted"
    unused = cluster.start_worker()
    unused.stderr.wait_for("Successfully registered with master", 60)
    cluster.end_worker(unused)
    step = log.last_step()
    log.wait_until(lambda: log.last_step() > step + 1, 300, "it continues")
    assert log.process_ids() == three, "what is not used changes nothing"
    cluster.end_worker(third)
    log.wait_until(lambda: log.trains_with(2), 300, "the third has gone")
    assert set(log.process_ids().values()) == first
    results, _ = training.end()
    assert [rank for rank, _ in results] == [0, 1]


@pytest.mark.parametrize("lost", [1, 2])
def test_too_few_executors_for_too_long_end_the_job(cluster, session, tmp_path, lost):
    run = Training(tmp_path, min_num_proc=2, elastic_timeout=20).run
    try:
        for worker in list(cluster.workers):
            cluster.end_worker(worker)
            if len(cluster.workers) + lost == 2:
                break
        with pytest.raises(AssertionError) as caught:
            run.results()
    finally:
        while len(cluster.workers) < 2:
            cluster.start_worker().stderr.wait_for("Successfully registered with master", 60)
    assert type(caught.value.__cause__) is RuntimeError
    assert str(caught.value.__cause__).startswith("The Horovod job failed: ")


EXCLUSION = [
    horovod.spark.conf.SPARK_CONF_BLACKLIST_ENABLED,
    horovod.spark.conf.SPARK_CONF_DONT_REUSE_EXECUTOR_FOR_SAME_TASK,
    horovod.spark.conf.SPARK_CONF_DONT_REUSE_FAILED_EXECUTOR,
    horovod.spark.conf.SPARK_CONF_DONT_REUSE_FAILED_EXECUTOR_IN_APP,
    horovod.spark.conf.SPARK_CONF_DONT_REUSE_FAILING_NODE,
    horovod.spark.conf.SPARK_CONF_DONT_REUSE_FAILING_NODE_IN_APP,
]


@pytest.mark.parametrize("session", [EXCLUSION], indirect=True, ids=["exclusion"])
def test_spark_excludes_nothing_for_a_process_that_is_killed(session, tmp_path):
    training = Training(tmp_path)
    log = training.log
    pids = log.process_ids()
    os.kill(pids[1], signal.SIGKILL)
    log.wait_until(lambda: log.trains_with(2) and pids[1] not in log.process_ids().values(), 300, "it was replaced")
    assert pids[0] in log.process_ids().values(), "the survivor was not restarted"
    results, _ = training.end()
    assert [rank for rank, _ in results] == [0, 1]


def test_modules_that_spark_has_sent_are_those_of_the_executor(session, tmp_path):
    archive = tmp_path / "sent.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("sent_to_executors.py", "")
    session.sparkContext.addPyFile(str(archive))

    def fn():
        import sent_to_executors

        return sent_to_executors.__file__

    files = horovod.spark.run(fn, num_proc=2, verbose=0)
    assert len(set(files)) == 2 and all(file.startswith(os.environ[MARK]) for file in files), files


def test_without_barrier_where_executors_come_and_go(cluster):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(cluster.url).config("spark.driver.host", "127.0.0.1")
    dynamic = {"enabled": "true", "shuffleTracking.enabled": "true", "minExecutors": "0", "maxExecutors": "2"}
    for name, value in {**QUIET, **{f"spark.dynamicAllocation.{key}": text for key, text in dynamic.items()}}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        assert horovod.spark.run(places, num_proc=2, verbose=0) == [(0, 0, 2, 1), (1, 1, 2, 1)]
    finally:
        session.stop()


DRIVER = """
import sys, horovod.spark
from pyspark.sql import SparkSession
SparkSession.builder.master(sys.argv[1]).config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false").getOrCreate()
def fn():
    import horovod.torch as hvd
    hvd.init()
    print("trains", hvd.rank(), flush=True)
    while True:
        hvd.barrier()
horovod.spark.run(fn, num_proc=2)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_driver_has_gone(cluster, tmp_path, number):
    driver = Running([sys.executable, "-c", DRIVER, cluster.url], env=dict(os.environ), cwd=tmp_path)
    try:
        driver.stdout.wait_for(r"(?s)trains \d.*trains \d", 90)
        driver.signal(number)
        driver.wait()
        assert wait_until_none(jobs) == []
    finally:
        driver.end()


def test_example_is_submitted(cluster):
    script = Path(__file__).resolve().parents[2] / "examples" / "spark" / "digits_on_spark.py"
    settings = [word for name, value in QUIET.items() for word in ("--conf", f"{name}={value}")]
    flags = ["--num-proc", "2", "--min-num-proc", "1"]
    command = [SPARK / "bin" / "spark-submit", "--master", cluster.url, *settings, script, *flags]
    driver = Running([str(word) for word in command])
    try:
        assert driver.wait(600) == 0, driver.everything()
    finally:
        driver.end()
    assert re.search(r"^2 processes, test accuracy (8[5-9]|9\d)\.\d%$", driver.stdout.text, re.M), driver.everything()
    cluster.master.stderr.wait_for("Registered app digits ")
    assert wait_until_none(jobs) == []
