"""horovod.dask on a cluster of Dask in this machine, whose workers come, go and are killed."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.parse
from pathlib import Path
from types import SimpleNamespace

import distributed
import pytest

import horovod.dask
from conftest import text_of_pages
from elastic_run import ElasticRun
from engine_output import Output, check_order_of
from horovod.dask import _cluster
from horovod.dask._cluster import Cluster
from processes import command_line, environment_of, pids_with, wait_until_none
from training import train
from training_log import TrainingLog

MARK = "HOROVOD_DASK_TEST"
SAMPLES = 240


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv(MARK, str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster:
        yield cluster
        assert wait_until_none(jobs) == []


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def jobs():
    """The processes of Horovod's that came from this test's cluster."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    return [pid for pid in pids_with(mark) if "horovod" in command_line(pid)]


def places(*more):
    import horovod.torch as hvd

    hvd.init()
    return (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), *more)


def test_results_output_and_errors(client, monkeypatch):
    stdout, stderr = Output(), Output()
    monkeypatch.setenv("SET_BY_CALLER", "1")

    def fn(a, b):
        print("said by", os.environ["MORE"], os.environ.get("SET_BY_CALLER"))
        return places(a, b)

    results = horovod.dask.run(fn, (1,), {"b": 2}, env={"MORE": "me"}, stdout=stdout, stderr=stderr)
    assert results == [(rank, 2, rank, 2, 1, 2) for rank in range(2)]
    for rank in range(2):
        stdout.stream.wait_for(rf"\[{rank}\]<stdout>:said by me None\n")
    assert horovod.dask.run(places, client=client, num_workers=1, verbose=0) == [(0, 1, 0, 1)]

    def fail():
        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("mine")
        hvd.barrier()

    with pytest.raises(RuntimeError, match=r"(?s)Rank 1 raised:.*in fail\n.*KeyError: 'mine'"):
        horovod.dask.run(fail, verbose=0)
    with pytest.raises(
        TimeoutError, match=r"^2 of 3 tasks have started.* within start_timeout=.*needs a Dask task of its own"
    ):
        horovod.dask.run(places, num_workers=3, start_timeout=10, verbose=0)
    with pytest.raises(ValueError, match="num_workers is 0"):
        horovod.dask.run(places, num_workers=0)
    assert wait_until_none(jobs) == []
    stdout.close()
    stderr.close()


@pytest.fixture
def cluster_of_threads(tmp_path, monkeypatch):
    monkeypatch.setenv(MARK, str(tmp_path))
    options = dict(processes=False, dashboard_address=None, local_directory=str(tmp_path))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, **options) as cluster:
        with distributed.Client(cluster) as client:
            yield client
        assert wait_until_none(jobs) == []


def test_workers_that_are_threads(cluster_of_threads):
    assert horovod.dask.run(places, verbose=0) == [(rank, 2, rank, 2) for rank in range(2)]
    assert horovod.dask.run_elastic(places, min_num_workers=1, verbose=0) == [(rank, 2, rank, 2) for rank in range(2)]
    message = (
        "2 of 3 tasks have started; the cluster has 2 workers, each of which runs one process, however many threads"
    )
    with pytest.raises(TimeoutError, match=message):
        horovod.dask.run(places, num_workers=3, start_timeout=10, verbose=0)


def test_a_worker_that_is_a_thread_drains_its_own_agents_alone(monkeypatch):
    class Agent:
        drained = False

        def drain(self):
            self.drained = True

        def wait(self):
            return 0

    own, other = Agent(), Agent()
    monkeypatch.setattr(_cluster, "_agents", [("inproc://1", own), ("inproc://2", other)])
    asyncio.run(_cluster.AgentsOfWorker().teardown(SimpleNamespace(address="inproc://1")))
    assert (own.drained, other.drained) == (True, False)


def test_files_that_the_client_has_sent_are_found_by_the_processes(client, tmp_path):
    (tmp_path / "sent_by_dask.py").write_text("VALUE = 42\n")
    client.upload_file(str(tmp_path / "sent_by_dask.py"))

    def value():
        import sent_by_dask

        return sent_by_dask.VALUE

    assert horovod.dask.run(value, verbose=0) == [42, 42]
    paths, _ = horovod.dask.run(lambda: sys.path, verbose=0)
    check_order_of(paths)


class OnlyHere:
    """An object that the workers, or the caller, can't unpickle."""

    def __reduce__(self):
        return int, ("x",)


def exits(status):
    sys.exit(status)


@pytest.mark.parametrize(
    "fn, args, error, text",
    [
        (exits, (0,), RuntimeError, r"Rank \d raised:(?s:.)*the function called sys\.exit\(0\); it has to return"),
        (exits, (3,), RuntimeError, r"the function called sys\.exit\(3\); it has to return"),
        (os._exit, (0,), RuntimeError, r"^no result came back from ranks \[0, 1\]$"),
        (print, (OnlyHere(),), RuntimeError, r"can't be unpickled on this worker: ValueError: invalid literal"),
        (OnlyHere, (), RuntimeError, r"^the result of rank 0 can't be unpickled here: ValueError: invalid literal"),
        (print, (threading.Lock(),), TypeError, r"^the function or one of its arguments can't be pickled: "),
        (threading.Lock, (), RuntimeError, r"the function's result, a lock, can't be pickled"),
        (input, ("? ",), RuntimeError, r"EOFError"),
    ],
)
def test_functions_that_give_no_result(client, fn, args, error, text):
    with pytest.raises(error, match=text):
        horovod.dask.run(fn, args, verbose=0)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"nics": ["nope0"]}, r"task\d: no address in nope0; it has lo"),
        ({"executable": "/nope/python"}, r"task\d: command not found: /nope/python"),
    ],
)
def test_an_agent_that_can_not_take_part_says_why(client, options, text):
    with pytest.raises(RuntimeError, match=text):
        horovod.dask.run(places, verbose=0, **options)


def test_a_failure_of_an_elastic_job_shows_the_users_frames_alone(client):
    stderr = Output()
    with pytest.raises(RuntimeError, match=r"sys\.exit\(3\)"):
        horovod.dask.run_elastic(exits, (3,), stderr=stderr, verbose=0)
    stderr.close()
    assert "in exits" in stderr.text and "run_task.py" not in stderr.text


def test_secrets_are_in_no_command_line_environment_or_page(cluster, client, tokens):
    def fn(url, workers):
        pids = map(int, filter(str.isdigit, os.listdir("/proc")))
        processes = b"".join(command_line(pid).encode() + environment_of(pid) for pid in pids)
        of_workers = [f"info/{page}/{worker}.html" for page in ("worker", "call-stacks", "logs") for worker in workers]
        paths = ["info/main/workers.html", "info/main/logs.html", "json/identity.json", "json/counts.json", *of_workers]
        pages = text_of_pages(url, paths)
        tasks = sorted(set(re.findall(r"task/(horovod[^\"]+)\.html", pages.decode())))
        of_tasks = [f"info/{page}/{task}.html" for page in ("task", "call-stack") for task in tasks]
        return processes, tasks, pages + text_of_pages(url, of_tasks)

    workers = [urllib.parse.quote(worker, safe="") for worker in client.scheduler_info(n_workers=-1)["workers"]]
    url = f"http://127.0.0.1:{cluster.scheduler.http_server.port}/"
    ((processes, tasks, pages),) = horovod.dask.run(fn, (url, workers), num_workers=1, verbose=0)
    (token,) = tokens
    assert len(token) >= 32 and b"horovod-agent" in processes
    assert len(tasks) == 1 and b"_run_task" in pages
    assert token.encode() not in processes + pages


def test_waiting_for_workers_is_reported(cluster, client, monkeypatch):
    monkeypatch.setattr("horovod.runner._engine_run._NOTICE_SECONDS", 0.5)
    stderr, results = Output(), []
    run = threading.Thread(
        target=lambda: results.extend(
            horovod.dask.run(places, client=client, num_workers=3, start_timeout=600, stderr=stderr)
        )
    )
    run.start()
    stderr.stream.wait_for(
        r"horovod: [012] of 3 tasks have started; the cluster has 2 workers, .*; the others wait for room in Dask, for at most 600 s",
        60,
    )
    cluster.scale(3)
    run.join(120)
    assert not run.is_alive()
    stderr.close()
    assert [rank for rank, *_ in results] == [0, 1, 2]


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"fn": None}, TypeError, "^fn must be a function: Got None$"),
        ({"args": 3}, TypeError, "^args must be a list or tuple"),
        ({"kwargs": [1]}, TypeError, "^kwargs must be a dict"),
        ({"num_workers": "2"}, TypeError, "^num_workers must be a whole number: Got '2'$"),
        ({"num_workers": True}, TypeError, "^num_workers must be a whole number: Got True$"),
        ({"start_timeout": "9"}, TypeError, "^start_timeout must be a number of seconds: Got '9'$"),
        ({"start_timeout": -1}, ValueError, "^start_timeout must be a number of seconds, more than 0"),
        ({"env": {"A": 3}}, TypeError, "^env: variables and their values must be strings: Got 'A': 3$"),
        ({"env": {"A=B": "1"}}, ValueError, "^env: 'A=B': '1' can't be a variable"),
        ({"nics": 3}, TypeError, "^nics must be a list of names of network interfaces: Got 3$"),
        ({"verbose": "1"}, TypeError, "^verbose must be a whole number: Got '1'$"),
        ({"executable": 3}, TypeError, "^executable must be the path of a Python: Got 3$"),
        ({"client": "tcp://here:1"}, TypeError, r"^client must be a distributed\.Client: Got 'tcp://here:1'$"),
        ({"stdout": "file"}, TypeError, r"^stdout must be a file or another object with write\(\): Got 'file'$"),
    ],
)
def test_arguments_that_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        horovod.dask.run(**{"fn": places, **options})


def test_timeout_of_a_wait_is_any_class_that_distributed_has_for_it(monkeypatch):
    class Timeout(Exception):
        """As asyncio's before Python 3.11: not the builtin TimeoutError."""

    def wait(*_, **__):
        raise Timeout

    monkeypatch.setattr(distributed, "TimeoutError", Timeout)
    monkeypatch.setattr(distributed, "wait", wait)
    cluster = Cluster(None)
    cluster._places["worker"] = _cluster._Place(0, SimpleNamespace(done=lambda: False))
    cluster._wait()


def test_without_a_client():
    with pytest.raises(ValueError, match="there is no Dask client"):
        horovod.dask.run(places)


def test_worker_that_is_killed_ends_a_job_of_fixed_size(client):
    def fn():
        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 0:
            os.kill(int(os.environ["DASK_PARENT"]), signal.SIGKILL)
        hvd.barrier()

    pids = client.run(os.getpid)
    victim = next(iter(pids.values()))
    with pytest.raises(RuntimeError, match=r"host task[01] was lost"):
        horovod.dask.run(fn, env={"DASK_PARENT": str(victim)}, verbose=0)


def start_training(client, tmp_path, *more, **limits):
    """It ends when there is a file `end`."""
    arguments = ["--epochs", 100000, "--samples", SAMPLES, "--end-file", tmp_path / "end", *more]
    return ElasticRun(horovod.dask.run_elastic, train, *arguments, client=client, min_num_workers=1, **limits)


def test_elastic_job_follows_the_cluster(cluster, client, tmp_path):
    run = start_training(client, tmp_path)
    log = TrainingLog(run.stdout.stream)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 300, "two ranks train")
    first = set(log.process_ids().values())
    cluster.scale(3)
    log.wait_until(lambda: log.trains_with(3), 300, "a new worker has joined")
    assert first < set(log.process_ids().values()), "no worker was restarted"
    cluster.scale(1)
    log.wait_until(lambda: log.trains_with(1), 300, "two workers have left")
    (tmp_path / "end").touch()
    assert run.results() == [(0, 1)]
    assert log.check_samples(SAMPLES, log.epochs()) == 0, "workers that are closed cost no step"


def test_elastic_job_survives_the_loss_of_a_worker(client, tmp_path):
    logs = tmp_path / "logs"  # the last output of the lost worker's process may be lost, too
    logs.mkdir()
    run = start_training(
        client, tmp_path, "--log-dir", logs, max_num_workers=2
    )  # so that the lost one must be forgotten
    log = TrainingLog(run.stdout.stream)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 300, "two ranks train")
    pids, world = log.process_ids(), log.newest_world()
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    log.wait_until(lambda: log.has_trained_with(1, after=world), 300, "the survivor trains alone")
    log.wait_until(lambda: log.trains_with(2), 300, "the worker that its nanny has started has joined")
    assert len(set(pids.values()) & set(log.process_ids().values())) == 1, "the survivor was not restarted"
    (tmp_path / "end").touch()
    assert [rank for rank, _ in run.results()] == [0, 1]
    complete = TrainingLog.of_files(logs.iterdir())
    complete.check_samples(SAMPLES, complete.epochs())


def test_workers_that_one_look_misses_get_no_second_process(client, tmp_path, monkeypatch):
    """The scheduler's answers may come late, and in another order."""
    seen, missed, looked = Cluster.workers, threading.Event(), threading.Event()

    def none_once(cluster):
        if not missed.is_set():
            missed.set()
            return []
        looked.set()
        return seen(cluster)

    run = start_training(client, tmp_path)
    log = TrainingLog(run.stdout.stream)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 300, "two ranks train")
    first, step = log.process_ids(), log.last_step()
    monkeypatch.setattr(Cluster, "workers", none_once)
    assert looked.wait(60)
    log.wait_until(lambda: log.last_step() > step + 150, 300, "others would have joined by now")
    assert log.process_ids() == first
    (tmp_path / "end").touch()
    assert [rank for rank, _ in run.results()] == [0, 1]


@pytest.mark.parametrize("flags", [[], ["--min-num-workers", "1", "--max-num-workers", "2"]])
def test_example(flags, tmp_path):
    script = Path(__file__).resolve().parents[2] / "examples" / "dask" / "digits_on_dask.py"
    command = [sys.executable, str(script), *flags]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^2 processes, test accuracy (8[5-9]|9\d)\.\d%$", done.stdout, re.M), done.stdout


def test_example_on_a_cluster_that_is_there(cluster, tmp_path):
    script = Path(__file__).resolve().parents[2] / "examples" / "dask" / "digits_on_dask.py"
    flags = ["--num-workers", "2", "--min-num-workers", "1", "--address", cluster.scheduler_address]
    command = [sys.executable, str(script), *flags]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^2 processes, test accuracy (8[5-9]|9\d)\.\d%$", done.stdout, re.M), done.stdout
