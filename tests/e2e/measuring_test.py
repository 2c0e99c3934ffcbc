"""The timeline and autotune, asked for by flags; variables of the runtime that are wrong or mean nothing."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

MEASURED = ["python", str(Path(__file__).resolve().parent / "jobs" / "measured.py")]
INIT = ["python", "-c", "import horovod.numpy as hvd; hvd.init(); hvd.shutdown()"]


def count(events, name, phase, rank):
    return sum(1 for event in events if (event["name"], event["ph"], event["pid"]) == (name, phase, rank))


def test_timeline_of_a_whole_job(horovodrun, tmp_path):
    result = horovodrun.run("-np", "2", "--timeline-filename", "t.json", "--timeline-mark-cycles", *MEASURED, "20")
    assert result.returncode == 0, result.stderr
    events = json.loads((tmp_path / "t.json").read_text())
    for rank in (0, 1):
        assert count(events, "NEGOTIATE_ALLREDUCE", "b", rank) == 160
        assert count(events, "NEGOTIATE_ALLREDUCE", "e", rank) == 160
        assert count(events, "SHM_ALLREDUCE", "X", rank) == count(events, "ALLREDUCE", "X", rank) > 0
        assert count(events, "CYCLE_START", "i", rank) > 0
        carried = [event["args"] for event in events if event["name"] == "ALLREDUCE" and event["pid"] == rank]
        assert sum(args["tensors"] for args in carried) == 160
        assert sum(args["bytes"] for args in carried) == 160 * 4000
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {"rank 0 (localhost)", "rank 1 (localhost)"}


READ_AT_ONCE = """
import sys, numpy, horovod.numpy as hvd
from horovod.common.util import env
wanted = ["allreduce.test_allreduce", "NEGOTIATE_ALLREDUCE", '"ALLREDUCE"', "CYCLE_START"]
with env(HOROVOD_TIMELINE=sys.argv[1], HOROVOD_TIMELINE_MARK_CYCLES="1"):
    hvd.init()
    hvd.allreduce(numpy.array([1.0, 2.0, 3.0]), name="test_allreduce")
    while hvd.rank() == 0 and not all(word in open(sys.argv[1]).read() for word in wanted):
        pass
    hvd.barrier()
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_timeline_from_init_on_can_be_read_while_the_job_runs(horovodrun, tmp_path, ranks):
    result = horovodrun.run("-np", ranks, sys.executable, "-c", READ_AT_ONCE, tmp_path / "t.json")
    assert result.returncode == 0, result.stderr


def test_timeline_of_a_killed_job_can_be_read(horovodrun, tmp_path):
    job = horovodrun.start("-np", "2", "--timeline-filename", "t.json", *MEASURED, "100", "t.json")
    job.stdout.wait_for("written", 90, count=2)
    job.signal(signal.SIGKILL)
    job.wait()
    assert horovodrun.processes_left() == []
    text = (tmp_path / "t.json").read_text()
    # Viewers add what is missing at the end, if the events themselves are whole.
    events = json.loads(text if text.rstrip().endswith("]") else text + "]")
    assert count(events, "ALLREDUCE", "X", 1) > 0


def test_timeline_on_a_full_disk_is_reported_once(horovodrun):
    result = horovodrun.run("-np", "2", "--timeline-filename", "/dev/full", *MEASURED, "1")
    assert result.returncode == 0, result.stderr
    warnings = re.findall("warning: the timeline's file '/dev/full' is not complete: No space left", result.stderr)
    assert len(warnings) == 1, result.stderr


UNWRITABLE = {
    "no/such/directory": "No such file or directory",
    "folder": "Is a directory",
    "fifo": "it is a pipe that nobody reads",
}
FILE_FLAGS = {
    "HOROVOD_TIMELINE": ["--timeline-filename"],
    "HOROVOD_AUTOTUNE_LOG": ["--autotune", "--autotune-log-file"],
}


@pytest.fixture
def unwritable(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")


@pytest.mark.usefixtures("unwritable")
@pytest.mark.parametrize("file", sorted(UNWRITABLE))
@pytest.mark.parametrize("variable", sorted(FILE_FLAGS))
def test_runtime_file_that_cannot_be_written_is_refused(horovodrun, variable, file):
    flags = FILE_FLAGS[variable]
    result = horovodrun.run("-np", "2", *flags, file, *INIT)
    why = f"{flags[-1]} ({variable}): can't write {file}: {UNWRITABLE[file]}"
    assert (result.returncode, result.stderr) == (2, f"horovodrun: error: {why}\n")


@pytest.mark.usefixtures("unwritable")
@pytest.mark.parametrize("file", sorted(UNWRITABLE))
@pytest.mark.parametrize("variable", sorted(FILE_FLAGS))
def test_runtime_file_that_cannot_be_written_costs_the_file_alone(horovodrun, variable, file):
    # The launcher does not see what a script sets.
    settings = ["env", "HOROVOD_AUTOTUNE=1", f"{variable}={file}"]
    result = horovodrun.run("-np", "2", *settings, *INIT)
    assert result.returncode == 0, result.stderr
    (line,) = result.stderr.splitlines()
    assert "error: " in line and f"can't be written: {UNWRITABLE[file]}" in line and file in line


def test_autotune_measures_and_ends(horovodrun, tmp_path):
    flags = ["--autotune-log-file", "a.csv", "--autotune-warmup-samples", "1", "--autotune-steps-per-sample", "3"]
    result = horovodrun.run("-np", "2", "--autotune", *flags, "--autotune-bayes-opt-max-samples", "6", *MEASURED, "40")
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert len(rows) == 7  # the last one is what was found
    assert all(float(row["score"]) > 0 for row in rows)
    assert len({(row["tensor_fusion_threshold"], row["cycle_time_ms"]) for row in rows}) > 3
    assert (rows[-1]["tensor_fusion_threshold"], rows[-1]["cycle_time_ms"]) in {
        (row["tensor_fusion_threshold"], row["cycle_time_ms"]) for row in rows[:-1]
    }


def test_autotune_leaves_alone_what_is_given(horovodrun, tmp_path):
    flags = ["--autotune-log-file", "a.csv", "--autotune-warmup-samples", "0", "--autotune-steps-per-sample", "2"]
    result = horovodrun.run(
        "-np",
        "2",
        "--autotune",
        "--cycle-time-ms",
        "0.5",
        *flags,
        "--autotune-bayes-opt-max-samples",
        "5",
        *MEASURED,
        "20",
    )
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert {row["cycle_time_ms"] for row in rows} == {"0.5"}
    assert len({row["tensor_fusion_threshold"] for row in rows}) > 1


# What is set -> how many tensors the all-reduces of two groups of three may carry, all of 4000 bytes.
FUSION = {
    "HOROVOD_CYCLE_TIME=200": [[6]],
    "HOROVOD_FUSION_THRESHOLD=0": [[1, 1, 1, 1, 1, 1]],
    "HOROVOD_FUSION_THRESHOLD=8000": [
        [2, 2, 2],
        [2, 1, 2, 1],
    ],  # the second group may come later: the first fills the buffer
    "HOROVOD_DISABLE_GROUP_FUSION=1": [[3, 3]],
    "HOROVOD_CACHE_CAPACITY=0": [[6]],
}

GROUPS = """
import numpy, horovod.numpy as hvd
hvd.init()
groups = [hvd.grouped_allreduce_async([numpy.ones(1000, "f")] * 3, name=name) for name in "ab"]
assert all((x == 1).all() for group in groups for x in hvd.synchronize(group))
hvd.shutdown()
"""


@pytest.mark.parametrize("setting", sorted(FUSION))
def test_what_is_fused(horovodrun, tmp_path, setting):
    # The cycle time gathers both groups, whatever the machine does between the calls.
    settings = [word for assignment in ("HOROVOD_CYCLE_TIME=200", setting) for word in ("-x", assignment)]
    result = horovodrun.run("-np", "2", *settings, "--timeline-filename", "t.json", "python", "-c", GROUPS)
    assert result.returncode == 0, result.stderr
    events = json.loads((tmp_path / "t.json").read_text())
    for rank in (0, 1):
        carried = [
            event["args"]["tensors"] for event in events if event["name"] == "ALLREDUCE" and event["pid"] == rank
        ]
        assert carried in FUSION[setting]


CORES = """
import os, horovod.numpy as hvd
before = set(os.listdir("/proc/self/task"))
hvd.init()
tasks = ["/proc/self/task/" + task + "/status" for task in os.listdir("/proc/self/task") if task not in before]
allowed = [line.split()[1] for task in tasks for line in open(task) if line.startswith("Cpus_allowed_list")]
print("bound" if allowed.count("1") == 1 else allowed)
hvd.barrier()  # with the first rank that leaves all engines end
"""


@pytest.mark.skipif(os.cpu_count() < 2, reason="needs two cores")
def test_thread_affinity_binds_the_engines_thread(horovodrun):
    result = horovodrun.run("-np", "2", "-x", "HOROVOD_THREAD_AFFINITY=1,1", "python", "-c", CORES)
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:bound", "[1]<stdout>:bound"]


def test_thread_affinity_with_too_few_cores_is_reported(horovodrun):
    result = horovodrun.run("-np", "2", "--thread-affinity", "1", "python", "-c", CORES)
    assert "[0]<stdout>:bound\n" in result.stdout and "[1]<stdout>:bound" not in result.stdout
    assert "HOROVOD_THREAD_AFFINITY names no core for local rank 1: the engine's thread is not bound" in result.stderr


def test_log_level_and_time(horovodrun):
    result = horovodrun.run("-np", "1", "-x", "HOROVOD_LOG_LEVEL=Debug", "--log-without-timestamp", *INIT)
    assert "[0]<stderr>:horovod[0] debug: world 1: connected\n" in result.stderr
    result = horovodrun.run("-np", "1", "--log-level", "debug", *INIT)
    assert re.search(r"^\[0\]<stderr>:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ horovod\[0\] debug: ", result.stderr, re.M)
    assert horovodrun.run("-np", "1", *INIT).stderr == ""


STALL = """
import time, numpy, horovod.numpy as hvd
hvd.init()
if hvd.rank() == 1:
    time.sleep(1000)
hvd.allreduce(numpy.ones(2), name="waited_for")
"""


def test_stall_check_warns_and_gives_up(horovodrun):
    flags = ["--stall-check-warning-time-seconds", "1", "--stall-check-shutdown-time-seconds", "3"]
    result = horovodrun.run("-np", "2", *flags, "python", "-c", STALL)
    assert result.returncode == 1
    stalled = "in allreduce 'waited_for', waiting for rank 1 on host"
    assert len(re.findall(r"^horovodrun: Stalled for \d+s " + stalled, result.stderr, re.M)) == 1, result.stderr
    assert re.search(r"Cause: Stalled for \d+s " + stalled, result.stderr), result.stderr


# Variable -> a value that is wrong, and what would be right.
BAD = {
    "HOROVOD_FUSION_THRESHOLD": ("-1", "a whole number, 0 or larger"),
    "HOROVOD_CYCLE_TIME": ("soon", "a number, 0 or larger"),
    "HOROVOD_CACHE_CAPACITY": ("1.5", "a whole number, 0 or larger"),
    "HOROVOD_AUTOTUNE": ("yes", "0 or 1"),
    "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE": ("0", "a whole number from 1 to 1000000"),
    "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE": ("2", "a number from 0 to 1"),
    "HOROVOD_TIMELINE_MARK_CYCLES": ("maybe", "0 or 1"),
    "HOROVOD_STALL_CHECK_TIME_SECONDS": ("-1", "a number, 0 or larger"),
    "HOROVOD_THREAD_AFFINITY": ("0;1", "core numbers separated by commas"),
    "HOROVOD_GLOO_TIMEOUT_SECONDS": ("0", "larger than 0"),
    "HOROVOD_LOG_LEVEL": ("LOUD", "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL"),
    "HOROVOD_DISABLE_GROUP_FUSION": ("2", "0 or 1"),
}


@pytest.mark.parametrize("variable", sorted(BAD))
def test_bad_variable_is_refused(horovodrun, variable):
    value, right = BAD[variable]
    result = horovodrun.run("-np", "1", "-x", f"{variable}={value}", "true")
    assert result.returncode == 2
    assert result.stderr == f"horovodrun: error: environment variable {variable}='{value}': must be {right}\n"


WITHOUT_LAUNCHER = """
import json, os, sys
import horovod.numpy as hvd
for variable, (value, right) in json.loads(sys.argv[1]).items():
    os.environ[variable] = value
    try:
        hvd.init()
    except ValueError as error:
        assert str(error) == f"environment variable {variable}='{value}': must be {right}", error
    else:
        raise SystemExit(variable + " was taken")
    del os.environ[variable]
hvd.init()
"""


def test_bad_variable_without_launcher_is_an_error_of_init():
    subprocess.run([sys.executable, "-c", WITHOUT_LAUNCHER, json.dumps(BAD)], check=True, timeout=60)


@pytest.mark.parametrize(
    "variable, value",
    [("HOROVOD_NUM_NCCL_STREAMS", "4"), ("HOROVOD_MPI_THREADS_DISABLE", "1")],
)
def test_meaningless_variable_is_noted_once(horovodrun, variable, value):
    result = horovodrun.run("-np", "2", "-x", f"{variable}={value}", *INIT)
    assert result.returncode == 0, result.stderr
    assert len(re.findall(rf"{variable}={value} has no meaning here: ", result.stderr)) == 1


def test_misspelt_variable_is_noted_once(horovodrun):
    result = horovodrun.run("-np", "2", "-x", "HOROVOD_CYCLE_TIMES=4", *INIT)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("HOROVOD_CYCLE_TIMES has no effect: did you mean HOROVOD_CYCLE_TIME?") == 1


def test_library_of_horovod_that_is_not_here_is_noted(horovodrun):
    result = horovodrun.run("-np", "2", "-x", "HOROVOD_CPU_OPERATIONS=MPI", *INIT)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("HOROVOD_CPU_OPERATIONS=MPI means TCP: this version has no MPI and no oneCCL") == 1


def test_gloo_sums_between_hosts_when_asked_for(horovodrun, tmp_path):
    """Without shared memory each process counts as a host."""
    script = "import numpy, horovod.numpy as hvd; hvd.init(); print(hvd.allreduce(numpy.ones(9), op=hvd.Sum)[0])"
    timeline = tmp_path / "timeline.json"
    for library in ("GLOO", "tcp"):
        options = ["-x", f"HOROVOD_CPU_OPERATIONS={library}", "-x", "HOROVOD_SHARED_MEMORY=0"]
        options += ["--timeline-filename", timeline]
        result = horovodrun.run("-np", "2", *options, sys.executable, "-c", script)
        assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:2.0", "[1]<stdout>:2.0"], result.stderr
        assert f'"{library.upper()}_ALLREDUCE"' in timeline.read_text()


def test_gloo_can_not_be_encrypted(horovodrun):
    result = horovodrun.run("-np", "2", "--encrypt-data", "-x", "HOROVOD_CPU_OPERATIONS=GLOO", *INIT)
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("HOROVOD_CPU_OPERATIONS=GLOO: Gloo's connections can't be encrypted") == 1, result.stderr


def test_variables_of_workers(horovodrun):
    names = ["HOROVOD_CONTROLLER", "HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME"]
    result = horovodrun.run("-np", "1", "sh", "-c", "echo " + " ".join(f'"${name}"' for name in names))
    assert result.stdout.strip() == "[0]<stdout>:gloo lo lo"
