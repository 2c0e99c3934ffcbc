"""The report of what ends or interrupts a rank: printed once, with its cause, in the frames of the user's code."""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processes import command_line

JOBS = Path(__file__).resolve().parent / "jobs"


def lines_of(text, rank, stream="stderr"):
    prefix = f"[{rank}]<{stream}>:"
    return [line[len(prefix) :] for line in text.splitlines() if line.startswith(prefix)]


def test_signals_interrupt_collectives(horovodrun, tmp_path):
    os.mkfifo(tmp_path / "go")
    result = horovodrun.run("-np", "2", sys.executable, JOBS / "interrupted.py", tmp_path / "go")
    assert result.returncode == 0, result.stdout + result.stderr
    said = lines_of(result.stdout, 0, "stdout")
    assert said[:4] == ["run KeyboardInterrupt", "submit KeyboardInterrupt", "barrier Alarm", "synchronize Alarm"]
    assert set(said[4:]) <= {"a handler that returns"}


def test_an_exception_is_shown_in_the_users_frames_and_others_in_a_line(horovodrun):
    result = horovodrun.run(
        "-np", "3", sys.executable, JOBS / "fails.py", "raise", env={"HOROVOD_LOG_LEVEL": "warning"}
    )
    assert result.returncode == 1
    cause = "\n".join(lines_of(result.stderr, 1))
    assert "in train" in cause and "in load" in cause and cause.count("ValueError: bad sample 17") == 1
    assert not re.search(r"horovod/(_ffi|common|torch)/", cause), cause
    for rank in (0, 2):
        (line,) = lines_of(result.stderr, rank)
        assert line.startswith("HorovodInternalError: ") and "fails.py" in line, line
    assert "Process name: 1" in result.stderr


def test_who_leaves_amid_the_work_is_named_as_the_cause(horovodrun):
    result = horovodrun.run("-np", "2", sys.executable, JOBS / "fails.py", "exit")
    assert result.returncode == 1
    block = result.stderr[result.stderr.index("-" * 80) :]
    assert "a process left while others still needed it:\nProcess name: 1\nExit code: 0\n" in block
    assert (
        "Cause: rank 1 on host localhost left first" in block
        and "while rank 0 on host localhost still needed it" in block
    )
    assert "| " not in block  # the other one's last words say nothing more


def test_a_killed_guard_is_named_as_the_cause(horovodrun):
    job = horovodrun.start("-np", "1", "sh", "-c", "echo ready; exec sleep 1000")
    job.stdout.wait_for("ready")
    (guard,) = [pid for pid in horovodrun.processes() if command_line(pid).startswith("horovod-guard")]
    os.kill(guard, signal.SIGKILL)
    assert job.wait() == 1
    assert "Cause: host localhost was lost: horovod-guard, its agent's parent, was killed" in job.stderr.text
    assert horovodrun.processes_left() == []


def test_an_exception_in_horovod_run_is_shown_once(tmp_path):
    path = str(JOBS / "fails.py")
    code = (
        "import horovod\n"
        f"def train():\n    import runpy, sys\n    sys.argv[1:] = ['raise']\n    runpy.run_path({path!r})\n"
        "horovod.run(train, num_proc=2)\n"
    )
    environment = {**os.environ, "HOROVOD_LOG_LEVEL": "warning"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, timeout=120
    )
    assert result.returncode == 1
    assert result.stderr.count("raise ValueError") == 1, result.stderr
    assert "RuntimeError: The Horovod job failed: " in result.stderr and "Rank 1 raised:" in result.stderr


def test_a_rank_that_executes_another_program_is_named_after_a_minute(horovodrun):
    """Also while others start a child, or execute a program after hvd.shutdown(). It takes that minute."""
    script = (
        "import os, subprocess; import horovod.numpy as hvd; hvd.init(); rank = hvd.rank()\n"
        "if rank == 0: subprocess.run(['sleep', '1000'])\n"
        "if rank == 2: hvd.shutdown()\n"
        "os.execlp('sleep', 'sleep', '1000')"
    )
    job = horovodrun.run("-np", "3", sys.executable, "-c", script, timeout=120)
    assert job.returncode == 137, job.stderr
    (cause,) = re.findall(r"rank .*(?=without hvd.shutdown)", job.stderr)
    meaning = "killed by signal 9 (SIGKILL) by its agent: it executed another program (exec) "
    assert cause == f"rank 1 on host localhost failed: {meaning}", job.stderr


@pytest.mark.parametrize("flags", [[], ["--min-np", "1", "--grace", "1"]], ids=["static", "elastic"])
def test_sigterm_ends_a_job_whose_output_is_not_read(horovodrun, tmp_path, flags):
    os.mkfifo(tmp_path / "output")
    reader = os.open(tmp_path / "output", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "output", os.O_WRONLY)
    script = "import horovod.numpy as hvd; hvd.init()\nwhile True: print('x' * 1000)"
    command = ["-np", "2", *flags, sys.executable, "-c", script]
    job = horovodrun.start(*command, preexec_fn=lambda: os.dup2(writer, 1) and None)
    select.select([reader], [], [])  # they write
    filler = os.open(tmp_path / "output", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):  # from now on the pipe is full
        while True:
            os.write(filler, bytes(4096))
    job.signal(signal.SIGTERM)
    assert job.wait(60) == 143, job.everything()
    for end in (reader, writer, filler):
        os.close(end)
