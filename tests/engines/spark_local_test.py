"""horovod.spark in a session within this process: local[2]."""

import importlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import horovod.spark
from conftest import text_of_pages
from engine_output import Output, check_order_of
from horovod.runner._engine_task import Task
from horovod.runner._job import JoinInfo
from horovod.spark.common.backend import SparkBackend, default_num_proc
from processes import command_line, environment_of, pids_with, wait_until_none
from spark_cluster import QUIET, environment

MARK = "HOROVOD_SPARK_LOCAL_TEST"


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    logs = tmp_path_factory.mktemp("events")
    saved = dict(os.environ)
    os.environ.update({**environment(), MARK: str(logs)})
    builder = SparkSession.builder.master("local[2]")
    # An earlier session of this process has left its settings in the JVM.
    own = {
        "spark.task.maxFailures": "4",
        "spark.dynamicAllocation.enabled": "false",
        "spark.decommission.enabled": "false",
    }
    for name, value in {
        **QUIET,
        **own,
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{logs}",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(saved)


@pytest.fixture
def output():
    streams = Output(), Output()
    yield streams
    for stream in streams:
        stream.close()


def workers_of_jobs():
    mark = f"{MARK}={os.environ[MARK]}".encode()
    return [pid for pid in pids_with(mark) if "horovod" in command_line(pid)]


def places(*more):
    import horovod.torch as hvd

    hvd.init()
    return (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_size(), *more)


def speak():
    import torch

    import horovod.torch as hvd

    hvd.init()
    print(f"running fn {hvd.size()}")
    print("error line", file=sys.stderr)
    return hvd.allgather(torch.tensor([hvd.rank()])).tolist(), hvd.rank()


def test_results_come_in_rank_order_and_ranks_of_a_machine_share_it(spark, tmp_path):
    timeline = tmp_path / "timeline.json"

    def fn(a, b):
        import torch

        import horovod.torch as hvd

        place = places(a, b)
        hvd.allreduce(torch.ones(4), name="x")
        return place

    results = horovod.spark.run(fn, args=(1,), kwargs={"b": "two"}, env={"HOROVOD_TIMELINE": str(timeline)}, verbose=0)
    assert results == [(rank, 2, rank, 2, 1, 1, "two") for rank in range(2)]
    names = [event["name"] for event in json.loads(timeline.read_text())]
    assert "SHM_ALLREDUCE" in names, "the tasks do not share memory"


@pytest.mark.parametrize("elastic", [False, True])
def test_output_goes_to_the_streams_that_were_given(spark, output, elastic):
    stdout, stderr = output
    streams = dict(stdout=stdout, stderr=stderr, start_timeout=60, env={"HOROVOD_LOG_LEVEL": "WARNING"})
    if elastic:
        results = horovod.spark.run_elastic(
            speak, num_proc=2, min_num_proc=2, max_num_proc=2, prefix_output_with_timestamp=True, **streams
        )
    else:
        results = horovod.spark.run(speak, use_gloo=True, use_mpi=False, **streams)
    assert results == [([0, 1], 0), ([0, 1], 1)]
    time = r"^\w{3} \w{3} .*\d" if elastic else "^"
    for rank in range(2):
        stdout.stream.wait_for(rf"(?m){time}\[{rank}\]<stdout>:running fn 2\n")
        stderr.stream.wait_for(rf"(?m){time}\[{rank}\]<stderr>:error line\n")
    assert "horovod-agent" not in stderr.text and "2 ranks finished" in stderr.text


def test_an_exception_is_raised_with_its_own_traceback_and_nothing_stays(spark):
    def fn():
        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("mine")
        hvd.barrier()

    own = r"(?s)^The Horovod job failed: rank 1 on host task\d failed: KeyError: 'mine'.*Rank 1 raised:.*in fn\n.*KeyError: 'mine'"
    with pytest.raises(RuntimeError, match=own) as caught:
        horovod.spark.run(fn, verbose=0)
    assert "py4j" not in str(caught.value) and "org.apache" not in str(caught.value)
    assert wait_until_none(workers_of_jobs) == []
    assert horovod.spark.run(places, verbose=0)[1][0] == 1, "the next run works"


def test_a_worker_that_dies_is_named(spark):
    def fn():
        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        hvd.barrier()

    with pytest.raises(
        RuntimeError, match=r"rank 0 on host task0 was killed by signal 9|rank 0 on host task0.*SIGKILL"
    ):
        horovod.spark.run(fn, verbose=0)


def test_too_few_slots_time_out(spark):
    with pytest.raises(
        TimeoutError, match=r"of 4 tasks have started within start_timeout=10 s.*needs a Spark task of its own"
    ):
        horovod.spark.run(places, num_proc=4, start_timeout=10, verbose=0)
    with pytest.raises(TimeoutError, match="2 of 3 tasks have started"):
        horovod.spark.run_elastic(places, num_proc=3, start_timeout=10, verbose=0)
    assert wait_until_none(workers_of_jobs) == []
    assert len(horovod.spark.run(places, verbose=False)) == 2


def test_start_timeout_of_the_environment(spark, monkeypatch):
    monkeypatch.setenv("HOROVOD_SPARK_START_TIMEOUT", "2")
    with pytest.raises(TimeoutError, match=r"^[0-2] of 3 tasks have started within start_timeout=2 s\. "):
        horovod.spark.run(places, num_proc=3, verbose=0)
    monkeypatch.setenv("HOROVOD_SPARK_START_TIMEOUT", "2m")
    with pytest.raises(
        ValueError, match=r"^HOROVOD_SPARK_START_TIMEOUT: '2m' is not a whole number of seconds, as 600$"
    ):
        horovod.spark.run(places, verbose=0)


def test_backends_default_is_sparks_parallelism(spark):
    assert default_num_proc() == spark.sparkContext.defaultParallelism


def test_backends_environment_has_no_gpus_of_the_driver(spark, monkeypatch):
    monkeypatch.setenv("SET_BY_CALLER", "1")

    def found(env, more):
        return SparkBackend(1, env, verbose=0).run(lambda: dict(os.environ), env=more)[0]

    hidden = {"CUDA_VISIBLE_DEVICES": "of the driver"}
    first = found({"A": "b", **hidden}, {"C": "d", **hidden})
    assert (first["A"], first["C"], first.get("SET_BY_CALLER")) == ("b", "d", None)
    assert first.get("CUDA_VISIBLE_DEVICES") != "of the driver"
    assert found({}, None)["SET_BY_CALLER"] == "1"


def test_num_proc_precedes_sparks_parallelism(spark):
    assert horovod.spark.run(places, num_proc=1, verbose=0) == [(0, 1, 0, 1, 1)]


def test_env_of_the_caller_is_not_that_of_the_workers(spark, monkeypatch):
    monkeypatch.setenv("SET_BY_CALLER", "1")
    both = horovod.spark.run(
        lambda: (os.environ.get("SET_BY_CALLER"), os.environ["MORE"]), env={"MORE": "2"}, verbose=0
    )
    assert both == [(None, "2")] * 2


def test_arguments_that_are_refused(spark):
    with pytest.raises(TypeError, match=r"^env must be a dict, not _Environ: pass dict"):
        horovod.spark.run(places, env=os.environ)
    with pytest.raises(ValueError, match="without MPI"):
        horovod.spark.run(places, use_mpi=True)
    with pytest.raises(ValueError, match="num_proc is 0"):
        horovod.spark.run(places, num_proc=0)
    with pytest.raises(TypeError, match=r"^num_proc must be a whole number: Got '2'$"):
        horovod.spark.run(places, num_proc="2")
    with pytest.raises(TypeError, match=r"^env: variables and their values must be strings: Got 'A': 3$"):
        horovod.spark.run(places, env={"A": 3})
    with pytest.raises(TypeError, match=r"^nics must be a list of names of network interfaces: Got 3$"):
        horovod.spark.run(places, nics=3)
    with pytest.raises(TypeError, match=r"^verbose must be a whole number: Got '2'$"):
        horovod.spark.run_elastic(places, verbose="2")
    with pytest.raises(TypeError, match=r"^executable must be the path of a Python: Got 3$"):
        horovod.spark.run(places, executable=3)
    with pytest.raises(RuntimeError, match=r"task\d: no address in nope0"):
        horovod.spark.run(places, nics=["nope0"], verbose=0)
    with pytest.raises(ValueError, match=r"min_num_proc \(3\), num_proc \(2\)"):
        horovod.spark.run_elastic(places, num_proc=2, min_num_proc=3)


def test_older_names_of_limits(spark):
    with pytest.warns(DeprecationWarning, match="min_np is deprecated, use min_num_proc instead"):
        results = horovod.spark.run_elastic(places, num_proc=2, min_np=1, max_np=2, verbose=0)
    assert results == [(rank, 2, rank, 2, 1) for rank in range(2)]
    with pytest.raises(ValueError, match="max_np is an older name of max_num_proc: give one of them"):
        horovod.spark.run_elastic(places, num_proc=2, max_num_proc=2, max_np=2)
    with pytest.raises(ValueError, match="min_num_proc is 0: it must be 1 or more"):
        horovod.spark.run_elastic(places, num_proc=2, min_num_proc=0)


@pytest.mark.parametrize("run", [horovod.spark.run, horovod.spark.run_elastic])
def test_an_agent_that_can_not_start_says_why(spark, run):
    with pytest.raises(RuntimeError, match=r"^Spark task could not start its process: task\d.*: no address in nope0"):
        run(places, num_proc=2, nics=["nope0"], verbose=0)
    assert wait_until_none(workers_of_jobs) == []


def test_executable_of_the_processes(spark, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nSTARTED_BY=$0 exec {sys.executable} "$@"\n')
    python.chmod(0o700)
    both = horovod.spark.run(lambda: os.environ["STARTED_BY"], executable=str(python), verbose=0)
    assert both == [str(python)] * 2
    with pytest.raises(RuntimeError, match="command not found: /nowhere/python"):
        horovod.spark.run(places, executable="/nowhere/python", verbose=0)


def test_processes_have_the_environment_directory_and_path_of_their_tasks(spark, tmp_path):
    module = tmp_path / "sent_by_spark.py"
    module.write_text("VALUE = 42\n")
    spark.sparkContext.addPyFile(str(module))

    def seen(*_):
        import sent_by_spark

        yield os.getcwd(), dict(os.environ), sent_by_spark.VALUE

    ((directory, variables, value),) = spark.sparkContext.parallelize([0], 1).mapPartitions(seen).collect()
    ((own_directory, own, own_value, paths),) = horovod.spark.run(
        lambda: (*next(seen()), sys.path), num_proc=1, env={"HADOOP_TOKEN_FILE_LOCATION": "here"}, verbose=0
    )
    check_order_of(paths)
    assert (own_directory, own_value) == (directory, value)
    changed = {name for name, text in variables.items() if own.get(name) != text}
    assert changed <= {"PYTHONPATH", "PYTHONUNBUFFERED"}
    assert variables["PYTHONPATH"] in own["PYTHONPATH"] and own["HADOOP_TOKEN_FILE_LOCATION"] == "here"


def test_exceptions_of_several_ranks_and_steps_are_survived(spark, tmp_path):
    def fn(directory):
        import horovod.torch as hvd

        hvd.init()
        state = hvd.elastic.ObjectState(step=0, seen=[])
        faults = {(1, 4): "first", (0, 9): "second", (1, 13): "third"}

        @hvd.elastic.run
        def train(state):
            while state.step < 20:
                state.step += 1
                state.seen = [*state.seen, state.step]
                fault = faults.get((hvd.rank(), state.step))
                if fault is not None and not (directory / fault).exists():
                    (directory / fault).touch()
                    raise RuntimeError(fault)
                hvd.barrier()
                state.commit()

        train(state)
        return state.seen

    assert horovod.spark.run_elastic(fn, args=(tmp_path,), num_proc=2, verbose=0) == [list(range(1, 21))] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second", "third"}


def test_all_ranks_that_raise_end_an_elastic_job(spark):
    def fn():
        import horovod.torch as hvd

        hvd.init()
        raise KeyError("everywhere")

    with pytest.raises(RuntimeError, match=r"(?s)^The Horovod job failed: .*KeyError: 'everywhere'"):
        horovod.spark.run_elastic(fn, num_proc=2, min_num_proc=1, verbose=0)
    assert wait_until_none(workers_of_jobs) == []


def test_settings_are_pairs_that_spark_knows(spark):
    """The names, and what Spark takes without them."""
    conf = horovod.spark.conf
    pairs = [value for name, value in vars(conf).items() if name.startswith("SPARK_CONF_") and type(value) is tuple]
    assert len(pairs) == 17 and {name for name, _ in pairs} == set(conf.SPARK_CONF_DEFAULT_VALUES)
    find = spark._jvm.org.apache.spark.internal.config.ConfigEntry.findEntry
    for name, default in conf.SPARK_CONF_DEFAULT_VALUES.items():
        entry = find(name)
        assert entry is not None, name
        assert entry.defaultValueString() in (default, "<undefined>"), name


def test_without_a_session():
    code = "import horovod.spark; horovod.spark.run(print)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    said = done.stderr.splitlines()[-1]
    assert said == "RuntimeError: horovod.spark needs an active SparkContext: make a SparkSession first"


def test_modules_that_are_not_here():
    text = "this version of Horovod has no such part of its layer for Spark; horovod.spark.run"
    with pytest.raises(ModuleNotFoundError, match=rf"^horovod\.spark\.driver: {text}"):
        importlib.import_module("horovod.spark.driver.host_discovery")
    for name in ("tensorflow", "data_loaders", "common.constants", "keras.remote", "torch.util", "lightning.legacy"):
        with pytest.raises(ModuleNotFoundError, match=rf"^horovod\.spark\.{name}: {text}"):
            importlib.import_module("horovod.spark." + name)


def test_elastic_job_starts_with_the_slots_that_there_are(spark, caplog):
    with caplog.at_level(logging.WARNING):
        results = horovod.spark.run_elastic(places, num_proc=2, min_num_proc=1, max_num_proc=4, verbose=0)
    assert results == [(rank, 2, rank, 2, 1) for rank in range(2)]
    assert "spark.task.maxFailures is" in caplog.text


def test_a_worker_that_fails_is_started_again_in_its_task(spark, output, tmp_path):
    def fn(failed):
        import horovod.torch as hvd

        hvd.init()
        state = hvd.elastic.ObjectState(step=0)

        @hvd.elastic.run
        def train(state):
            while state.step < 20:
                state.step += 1
                if state.step == 10 and hvd.rank() == 1 and not failed.exists():
                    failed.touch()
                    os._exit(3)
                state.commit()

        train(state)
        return hvd.rank(), state.step

    stdout, stderr = output
    results = horovod.spark.run_elastic(fn, args=(tmp_path / "failed",), num_proc=2, stdout=stdout, stderr=stderr)
    assert results == [(0, 20), (1, 20)]
    assert (tmp_path / "failed").exists()
    stderr.stream.wait_for(r"host task[01]\.0 failed: exit code 3")


def test_failed_elastic_job_shows_no_errors_of_spark(spark, capfd):
    def fn():
        raise KeyError("mine")

    with pytest.raises(RuntimeError, match="KeyError: 'mine'"):
        horovod.spark.run_elastic(fn, num_proc=2, verbose=0)
    said = capfd.readouterr().err
    assert "ERROR" not in said and "may come again" not in said, said


def test_secrets_are_in_no_command_line_environment_log_or_page(spark, tokens):
    def fn(url):
        import horovod.torch as hvd

        hvd.init()
        pids = map(int, filter(str.isdigit, os.listdir("/proc")))
        processes = b"".join(command_line(pid).encode() + environment_of(pid) for pid in pids)
        pages = ["jobs/", "stages/", "environment/", "executors/", "executors/threadDump/?executorId=driver"]
        of_rest = ["jobs", "stages?details=true&withSummaries=true", "allexecutors", "environment", "storage/rdd"]
        rest = [f"api/v1/applications/{application}/{path}" for path in of_rest]
        return processes, text_of_pages(url + "/", pages + rest)

    application = spark.sparkContext.applicationId
    processes, pages = horovod.spark.run(fn, args=(spark.sparkContext.uiWebUrl,), num_proc=1, verbose=0)[0]
    (token,) = tokens
    assert len(token) >= 32 and b"horovod-agent" in processes
    assert b"numActiveTasks" in pages and b"spark.ui.port" in pages and b"Thread dump" in pages
    logs = [path.read_bytes() for path in Path(os.environ[MARK]).rglob("*") if path.is_file()]
    assert logs and not any(token.encode() in text for text in [processes, pages, *logs])
    info = JoinInfo("h:1", token, token)
    assert token not in repr(info) and token not in repr(Task(info, {"PASSWORD": token}, None, (), True))
    assert token not in str(spark.sparkContext.getConf().getAll())


def test_gpus_of_the_task():
    """Spark's own way to give GPUs: a discovery script on each worker, here of a cluster that Spark starts for itself."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "jobs" / "spark_gpus.py")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout.splitlines()[-1])) == [["0"], ["1"]]


@pytest.mark.parametrize("flags", [[], ["--min-num-proc", "1", "--max-num-proc", "2"]])
def test_example(flags):
    script = Path(__file__).resolve().parents[2] / "examples" / "spark" / "digits_on_spark.py"
    command = [sys.executable, str(script), *flags]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^2 processes, test accuracy (8[5-9]|9\d)\.\d%$", done.stdout, re.M), done.stdout
