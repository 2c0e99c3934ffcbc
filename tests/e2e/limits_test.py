"""What the programs ask of the kernel for themselves, and leave to the workers as the user has it."""

import resource
import sys
from pathlib import Path

import pytest

from processes import command_line, pids_with

JOB = Path(__file__).resolve().parent / "jobs" / "waits_for_a_file.py"


def core_limit(pid):
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max core file size"):
            return line.split()[4]
    raise AssertionError(f"{pid} has no limits")


def oom_score(pid):
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


@pytest.fixture
def start(horovodrun, tmp_path):
    def start(*command):
        def allow_core_files():
            hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
            wanted = 1 << 30 if hard == resource.RLIM_INFINITY else hard
            resource.setrlimit(resource.RLIMIT_CORE, (wanted, hard))

        env = {"OMP_NUM_THREADS": "1", "LIMITS": str(tmp_path)}
        job = horovodrun.start("-np", "1", *command, sys.executable, JOB, env=env, preexec_fn=allow_core_files)
        job.stdout.wait_for(r"step 1$", 60)
        pids = {}
        for pid in pids_with(f"LIMITS={tmp_path}\0".encode()):
            line = command_line(pid)
            pids["worker" if line.startswith(f"{sys.executable} {JOB}") else Path(line.split()[0]).name] = pid
        started.append(job)
        return pids

    started = []
    yield start
    (tmp_path / "end").touch()
    for job in started:
        assert job.wait() == 0, job.everything()


def test_programs_with_keys_leave_no_core_files_and_workers_theirs_as_ever(start):
    pids = start()
    for name in ("horovodrun", "horovod-guard", "horovod-agent"):
        assert core_limit(pids[name]) in ("0", "1"), name
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert core_limit(pids["worker"]) == str(1 << 30 if hard == resource.RLIM_INFINITY else hard)


def test_workers_are_taken_before_their_agent_when_memory_runs_out(start):
    pids = start()
    agent = oom_score(pids["horovod-agent"])
    assert agent == oom_score("self")
    assert oom_score(pids["worker"]) == (agent if agent == -1000 else min(agent + 100, 1000))


def test_a_score_that_the_user_gives_a_worker_stays(start):
    pids = start("sh", "-c", 'echo 321 >/proc/self/oom_score_adj; exec "$@"', "sh")
    assert oom_score(pids["worker"]) == 321


def test_a_limit_of_file_sizes_costs_the_files_alone(horovodrun, tmp_path):
    """Not the programs, which the kernel would end with SIGXFSZ."""
    flags = ["-np", "2", "--output-filename", tmp_path / "output", "--event-log", tmp_path / "events"]
    (tmp_path / "events").write_text("x" * 4096)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # noqa: E731
    done = horovodrun.run(*flags, sys.executable, "-c", "print('x' * 63 * 1000)", preexec_fn=limit)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("x" * 63 * 1000) == 2
    lines = [line for line in done.stderr.splitlines() if "File too large" in line]
    assert sorted("events" in line for line in lines) == [False, True], done.stderr
    assert sorted("output/rank." in line for line in lines) == [False, True], done.stderr
