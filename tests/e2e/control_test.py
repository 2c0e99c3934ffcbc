"""horovodrun status and horovodrun stop, from another shell."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from joinable import Joinable
from terminal import Terminal
from training_log import TrainingLog

TRAINING = Path(__file__).resolve().parents[1] / "cluster" / "scripts" / "elastic_train.py"
NOTICES = Path(__file__).resolve().parent / "jobs" / "scheduler_signals.py"
ENDLESS = [sys.executable, str(TRAINING), "--framework", "numpy", "--samples", "100000"]


def control(*arguments):
    return subprocess.run(["horovodrun", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def status(*arguments):
    result = control("status", "--json", *arguments)
    return json.loads(result.stdout) if result.returncode == 0 else {"daemon": {"pid": None}}


def job_of(process):
    """The arguments that choose the job of this horovodrun, and no other one: jobs of other tests may run on this machine."""
    listed = control("status")
    candidates = re.findall(r"^(?:job )?([0-9a-f]{8})", listed.stdout, re.M)
    mine = [name for name in candidates if status("--job", name)["daemon"]["pid"] == process.pid]
    assert len(mine) == 1, (listed, process.everything())
    return ["--job", mine[0]]


def trains(stream, size, steps=5):
    log = TrainingLog(stream)
    log.wait_until(lambda: log.trains_with(size) and log.last_step() >= steps, 90, f"{size} ranks train")
    return log


def test_stop_ends_an_elastic_job_at_a_commit(horovodrun, tmp_path):
    command = [
        "-np",
        "2",
        "--min-np",
        "1",
        "--grace",
        "600",
        *ENDLESS,
        "--checkpoint-dir",
        tmp_path,
        "--checkpoint-every",
        "100000",
    ]
    first = horovodrun.start(*command)
    log = trains(first.stdout, 2)
    stopped = control("stop", *job_of(first))
    assert stopped.returncode == 0, stopped.stderr
    assert stopped.stdout.endswith(" ends: its workers leave at their next commit, within 10m; its exit code is 143\n")
    assert first.wait(60) == 143, first.everything()
    assert (
        "horovodrun: the job ends: horovodrun stop; all workers leave at their next commit, within 10m\n"
        in first.stderr.text
    )
    assert "The job has failed" not in first.stderr.text
    second = horovodrun.start(*command)
    resumed = TrainingLog(second.stdout)
    resumed.wait_until(lambda: resumed.last_step() > 0, 90, "it trains again")
    assert next(iter(resumed.worlds().values()))[1] == log.last_step()
    stopped = control("stop", "--now", *job_of(second))
    assert stopped.stdout.endswith(" ends: its workers are killed; its exit code is 143\n"), stopped
    assert second.wait(60) == 143, second.everything()
    assert "The job has failed" not in second.stderr.text


@pytest.fixture
def gate(tmp_path):
    """A named pipe from which a worker reads a byte, and the Python code that does so."""
    os.mkfifo(tmp_path / "gate")
    fd = os.open(tmp_path / "gate", os.O_RDWR)
    yield fd, f"(print('waits', flush=True), open('{tmp_path}/gate').read(1))"
    os.close(fd)


def one_rank(horovodrun, tmp_path, code):
    """A job whose only rank runs this code before step 5."""
    checkpoints = ["--checkpoint-dir", tmp_path / "kept", "--checkpoint-every", "100000"]
    limits = ["-np", "1", "--min-np", "1", "--grace", "600"]
    job = horovodrun.start(*limits, *ENDLESS, "--trouble", f"step == 5 and {code}", *checkpoints)
    job.stdout.wait_for("waits", 90)
    return job


def test_stop_twice_and_then_at_once(horovodrun, tmp_path, gate):
    job = one_rank(horovodrun, tmp_path, gate[1])
    chosen = job_of(job)
    for _ in range(2):
        stopped = control("stop", *chosen)
        assert stopped.stdout.endswith("its workers leave at their next commit, within 10m; its exit code is 143\n")
    stopped = control("stop", "--now", *chosen)
    assert stopped.stdout.endswith(" ends: its workers are killed; its exit code is 143\n"), stopped
    assert job.wait(60) == 143, job.everything()
    assert job.stderr.text.count("the job ends") == 1, job.everything()


def test_second_sigterm_kills_the_workers(horovodrun, tmp_path, gate):
    job = one_rank(horovodrun, tmp_path, gate[1])
    job.signal(signal.SIGTERM)
    job.stderr.wait_for("all workers leave at their next commit, within 10m", 60)
    job.signal(signal.SIGTERM)
    job.stderr.wait_for("interrupted by SIGTERM; killing the workers$", 60)
    assert job.wait(60) == 143, job.everything()


def test_commit_that_is_lost_when_all_are_killed_and_the_job_is_ended_at_once_is_named(horovodrun, tmp_path, gate):
    job = one_rank(horovodrun, tmp_path, gate[1])
    (worker,) = status(*job_of(job))["hosts"][0]["workers"]
    job.signal(signal.SIGTERM)
    job.stderr.wait_for("all workers leave at their next commit", 60)
    os.kill(worker["pid"], signal.SIGKILL)
    job.stdout.wait_for("waits", 90, count=2)  # the process that is to write it
    job.signal(signal.SIGTERM)
    assert job.wait(60) == 143, job.everything()
    last = job.stderr.text.splitlines()[-1]
    assert last.endswith(f"no checkpoint was written to {tmp_path}/kept; commit 5 is lost: no checkpoint has it"), last


def test_before_the_first_world_no_rank_is_awaited(horovodrun):
    for stop in ("SIGTERM", "horovodrun stop"):
        job = horovodrun.start("-np", "2", "--min-np", "1", "--grace", "600", "sh", "-c", "echo up; exec sleep 1000")
        job.stdout.wait_for("up$", 60, count=2)
        if stop == "SIGTERM":
            job.signal(signal.SIGTERM)
        else:
            assert control("stop", *job_of(job)).stdout.endswith("ends: no rank is in training; its exit code is 143\n")
        assert job.wait(60) == 143, job.everything()
        assert "no rank is in training" in job.stderr.text


def test_sigterm_while_ranks_exit_that_have_finished_changes_nothing(horovodrun, gate):
    fd, waits = gate
    script = f"import horovod.torch as hvd; hvd.init(); hvd.shutdown(); {waits}; import sys; sys.exit(CODE)"
    for code in (0, 3):
        job = horovodrun.start("-np", "1", "--min-np", "1", sys.executable, "-c", script.replace("CODE", str(code)))
        job.stdout.wait_for("waits", 90)
        job.signal(signal.SIGTERM)
        job.stderr.wait_for("no rank is in training, and all processes end within 30s", 60)
        os.write(fd, b"x")
        assert job.wait(60) == code, job.everything()


def test_stop_of_a_static_job_lets_all_ranks_save(horovodrun, tmp_path):
    job = horovodrun.start("-np", "2", sys.executable, NOTICES, tmp_path)
    job.stdout.wait_for(r"step 5$", 60)
    stopped = control("stop", *job_of(job))
    assert stopped.stdout.endswith(" ends: its workers get SIGTERM, and SIGKILL after 5s; its exit code is 143\n")
    assert job.wait() == 143, job.everything()
    assert len({(tmp_path / f"saved{rank}").read_text() for rank in (0, 1)}) == 1
    assert (
        "horovodrun: the job ends: horovodrun stop; its workers get SIGTERM, and SIGKILL after 5s\n" in job.stderr.text
    )


def test_status_of_a_static_job(horovodrun, tmp_path):
    job = horovodrun.start("-np", "2", sys.executable, NOTICES, tmp_path)
    job.stdout.wait_for(r"step 5$", 60)
    chosen = job_of(job)
    found = status(*chosen)
    assert found["command"] == f"{sys.executable} {NOTICES} {tmp_path}"
    assert found["daemon"] == {"pid": job.pid, "host": os.uname().nodename}
    assert (found["elastic"], found["failures_left"], found["commits_per_second"]) == (False, None, None)
    workers = [worker for host in found["hosts"] for worker in host["workers"]]
    for worker in workers:
        assert str(tmp_path) in Path(f"/proc/{worker['pid']}/cmdline").read_text()
    lines = control("status", *chosen).stdout.splitlines()
    assert lines[0] == f"job {found['job']}: running, world 1, 2 ranks"
    assert f"command: {found['command']}" in lines and f"daemon: pid {job.pid} on {os.uname().nodename}" in lines
    (tmp_path / "end").touch()
    assert job.wait() == 0, job.everything()


def test_status_knows_the_rate_of_commits(horovodrun):
    job = horovodrun.start("-np", "2", "--min-np", "1", *ENDLESS)
    trains(job.stdout, 2)
    chosen = job_of(job)
    job.stdout.wait_until(lambda _: status(*chosen)["commits_per_second"], 60, "a rate")
    found = status(*chosen)
    assert found["commits_per_second"] > 0 and found["commit"] > 0 and found["elastic"]
    assert " per second)" in control("status", *chosen).stdout
    assert control("stop", "--now", *chosen).returncode == 0
    assert job.wait() == 143


@pytest.fixture
def terminal(tmp_path):
    terminals = []

    def start(*arguments):
        terminals.append(Terminal(["horovodrun", *arguments], cwd=tmp_path, env={**os.environ, "TERM": "xterm"}))
        return terminals[-1]

    yield start
    for each in terminals:
        each.close()


def test_watch_draws_in_place_until_the_job_ends(horovodrun, tmp_path, terminal):
    job = horovodrun.start("-np", "2", sys.executable, NOTICES, tmp_path)
    job.stdout.wait_for(r"step 5$", 60)
    chosen = job_of(job)
    watch = terminal("status", "--watch", "0.2", *chosen)
    watch.wait_until(
        lambda lines: lines and lines[0].endswith(": running, world 1, 2 ranks") and watch.sent.count("\x1b[H") > 2
    )
    shown = watch.lines
    assert sum(line.startswith("job ") for line in shown) == 1, shown
    (tmp_path / "end").touch()
    assert watch.wait() == 0
    assert watch.lines[-1] == "the job has ended"
    assert job.wait() == 0, job.everything()


def test_watch_of_json_is_an_object_a_line(horovodrun, tmp_path):
    job = horovodrun.start("-np", "2", sys.executable, NOTICES, tmp_path)
    job.stdout.wait_for(r"step 5$", 60)
    watch = horovodrun.start("status", "--json", "--watch", "0.2", *job_of(job))
    watch.stdout.wait_for(r"\}\n.*\}\n", 60)
    (tmp_path / "end").touch()
    assert watch.wait() == 0, watch.everything()
    assert {json.loads(line)["size"] for line in watch.stdout.text.splitlines()} == {2}
    assert job.wait() == 0


@pytest.fixture
def joinable(tmp_path):
    joinable = Joinable(tmp_path)
    yield joinable
    joinable.close()


def test_stop_is_not_forgotten_by_a_daemon_that_is_started_again(joinable, tmp_path):
    """The workers are in a long step, during which the daemon dies."""
    os.mkfifo(tmp_path / "gate")
    gate = os.open(tmp_path / "gate", os.O_RDWR)
    limits = ["--np", "1", "--min-np", "1", "--grace", "600", "--state-dir", tmp_path / "state"]
    daemon, address = joinable.start_daemon("token", *limits)
    waits = "step == 5 and (print('waits', flush=True), open('gate').read(1))"
    agent = joinable.start(
        "horovod-agent", "--join", address, "--token-file", "token", "--", *ENDLESS, "--trouble", waits
    )
    agent.stdout.wait_for("waits", 90)
    where = ["--connect", address, "--token-file", tmp_path / "token"]
    other = tmp_path / "other"
    other.write_text((tmp_path / "token").read_text().replace('token: "', 'token: "x'))
    other.chmod(0o600)
    refused = control("stop", "--connect", address, "--token-file", other)
    assert refused.returncode == 2 and "token" in refused.stderr, refused
    assert status(*where)["state"] == "running"
    stopped = control("stop", *where)
    assert " ends: its workers leave at their next commit, within 10m" in stopped.stdout, stopped
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    again, same_address = joinable.start_daemon("token", *limits)
    assert same_address == address
    assert "the job ends (horovodrun stop)" in status(*where)["explanation"]
    os.write(gate, b"x")
    assert again.wait(60) == 143, again.everything()
    assert agent.wait(60) == 0, agent.everything()
    os.close(gate)


def test_there_is_no_such_job():
    for command in (["stop"], ["status", "--json"], ["status", "--watch"]):
        result = control(*command, "--job", "no-job")
        assert result.returncode == 2 and result.stdout == ""
        assert result.stderr.count("\n") == 1 and result.stderr.startswith("horovodrun: error: "), result.stderr
