"""horovod.dask on a cluster of Dask in this machine, whose workers come, go and are killed."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import distributed
import pytest

import horovod.dask
from engine_output import Output
from processes import command_line, pids_with, wait_until_none
from training import train
from training_log import TrainingLog

MARK = "HOROVOD_DASK_TEST"
SAMPLES, EPOCHS = 240, 12


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv(MARK, str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster:
        yield cluster
        assert wait_until_none(jobs, 20) == []


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
        stdout.stream.wait_for(rf"\[{rank}\]<stdout>:said by me None\n", 10)
    assert horovod.dask.run(places, client=client, num_workers=1, verbose=0) == [(0, 1, 0, 1)]

    def fail():
        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("mine")
        hvd.barrier()

    with pytest.raises(RuntimeError, match=r"(?s)Rank 1 raised:.*in fail\n.*KeyError: 'mine'"):
        horovod.dask.run(fail, verbose=0)
    with pytest.raises(TimeoutError, match=r"^Timed out waiting for Dask tasks to start.*2 of 3 tasks have started"):
        horovod.dask.run(places, num_workers=3, start_timeout=3, verbose=0)
    with pytest.raises(ValueError, match="num_workers is 0"):
        horovod.dask.run(places, num_workers=0)
    assert wait_until_none(jobs, 10) == []
    stdout.close()
    stderr.close()


def test_without_a_client():
    with pytest.raises(ValueError, match="No global client found"):
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


class ElasticRun:
    """run_elastic on a thread, with its output."""

    def __init__(self, client, *arguments, **limits):
        self.stdout, self.stderr = Output(), Output()
        self._results, self._error = None, None

        def run():
            try:
                self._results = horovod.dask.run_elastic(
                    train, arguments, client=client, stdout=self.stdout, stderr=self.stderr, **limits
                )
            except Exception as error:
                self._error = error
            finally:
                self.stdout.close()
                self.stderr.close()

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def results(self, timeout=120):
        self._thread.join(timeout)
        assert not self._thread.is_alive(), self.stdout.text + self.stderr.text
        if self._error is not None:
            raise AssertionError(self.stderr.text) from self._error
        return self._results


def test_elastic_job_follows_the_cluster(cluster, client):
    run = ElasticRun(client, "--epochs", EPOCHS, "--samples", SAMPLES, "--job", "dask", min_num_workers=1)
    log = TrainingLog(run.stdout.stream, job="dask")
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 90, "two ranks train")
    first = set(log.process_ids().values())
    cluster.scale(3)
    log.wait_until(lambda: log.trains_with(3), 90, "a new worker has joined")
    assert first < set(log.process_ids().values()), "nobody was restarted"
    cluster.scale(1)
    log.wait_until(lambda: log.trains_with(1), 90, "two workers have left")
    assert run.results() == [(0, 1)]
    assert log.check_samples(SAMPLES, EPOCHS) == 0, "workers that are closed cost no step"


def test_elastic_job_survives_the_loss_of_a_worker(client):
    run = ElasticRun(client, "--epochs", EPOCHS, "--samples", SAMPLES, "--job", "dask", min_num_workers=1)
    log = TrainingLog(run.stdout.stream, job="dask")
    log.wait_until(lambda: log.trains_with(2) and log.last_step() > 3, 90, "two ranks train")
    pids = log.process_ids()
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    log.wait_until(lambda: log.trains_with(1), 60, "the survivor trains alone")
    log.wait_until(lambda: log.trains_with(2), 90, "the worker that its nanny has started has joined")
    assert len(set(pids.values()) & set(log.process_ids().values())) == 1, "the survivor was not restarted"
    assert [rank for rank, _ in run.results()] == [0, 1]
    log.check_samples(SAMPLES, EPOCHS)


@pytest.mark.parametrize("flags", [[], ["--min-num-workers", "1", "--max-num-workers", "2"]])
def test_example(flags, tmp_path):
    script = Path(__file__).resolve().parents[2] / "examples" / "dask" / "digits_on_dask.py"
    command = [sys.executable, str(script), *flags]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^2 processes, test accuracy (8[5-9]|9\d)\.\d%$", done.stdout, re.M), done.stdout
