"""Child processes: their sessions, descriptors, output, waits with a limit, and ends."""

import io
import os
import signal
import stat
import subprocess
import sys

import pytest

from horovod.runner._child_process import ChildProcess, private_file

PIPE = subprocess.PIPE
BLOCKED = ["sh", "-c", "echo up; exec cat >&2"]  # until its stdin is closed


def python(code, *arguments):
    return [sys.executable, "-S", "-c", code, *arguments]


@pytest.mark.parametrize("new_session", [True, False])
def test_session(new_session):
    child = ChildProcess(python("import os; print(os.getsid(0))"), stdout=PIPE, start_new_session=new_session)
    session = int(child.stdout.read())
    assert child.wait() == 0
    assert session == (child.pid if new_session else os.getsid(0))


def test_child_reads_a_private_file():
    with private_file("secret") as file:
        assert stat.S_IMODE(os.fstat(file).st_mode) == 0o600
        child = ChildProcess(["cat", f"/proc/self/fd/{file}"], stdout=PIPE, pass_fds=[file])
    with pytest.raises(OSError):
        os.fstat(file)
    assert child.stdout.read() == b"secret" and child.wait() == 0


def test_child_does_not_inherit_other_descriptors():
    with private_file("secret") as file:
        os.set_inheritable(file, True)
        child = ChildProcess(["test", "-e", f"/proc/self/fd/{file}"])
        assert child.wait() == 1


def test_environment_of_the_child():
    child = ChildProcess(["/usr/bin/env"], env={"A": "b"}, stdout=PIPE)
    assert child.stdout.read() == b"A=b\n" and child.wait() == 0


def test_wait_returns_after_the_readers():
    read = {}

    def reader(pipe):
        text = pipe.read()
        while child.returncode is None:  # so that wait() has seen the end of the process
            os.sched_yield()
        read[len(read)] = text

    child = ChildProcess(["sh", "-c", "echo out; echo err >&2; exit 3"], stdout=PIPE, stderr=PIPE)
    child.read(child.stdout, reader, "stdout")
    child.read(child.stderr, reader, "stderr")
    assert child.wait() == 3
    assert sorted(read.values()) == [b"err\n", b"out\n"]
    assert child.stdout.closed and child.stderr.closed


def test_pipe_is_closed_when_its_reader_returns_early():
    child = ChildProcess(["yes"], stdout=PIPE)
    child.read(child.stdout, lambda pipe: pipe.readline(), "stdout")
    assert child.wait(60) == -signal.SIGPIPE


def test_wait_raises_while_the_child_runs():
    said = io.BytesIO()
    child = ChildProcess(BLOCKED, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    child.read(child.stderr, lambda pipe: said.write(pipe.read()), "stderr")
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0)
    child.stdin.write(b"end")
    child.stdin.close()
    assert child.wait(60) == 0
    assert said.getvalue() == b"end"
    child.stdout.close()


def test_wait_or_kill_kills_a_child_that_runs():
    child = ChildProcess(BLOCKED, stdin=PIPE, stdout=PIPE)
    assert child.stdout.readline() == b"up\n"
    assert child.wait_or_kill(0) == -signal.SIGKILL
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, 0)  # there is no zombie
    child.stdin.close()
    child.stdout.close()


def test_wait_or_kill_returns_the_code_of_a_child_that_ends():
    assert ChildProcess(["sh", "-c", "exit 5"]).wait_or_kill(60) == 5


def test_program_that_does_not_exist():
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/no/such/program"])
