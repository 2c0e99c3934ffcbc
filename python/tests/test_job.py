"""A job's daemon ends with the process that it belongs to, also where that has forked others, which hold its sockets. Needs
horovod-rendezvousd."""

import os
import select
import signal
import subprocess
import sys
import threading

import pytest

from horovod.runner._job import Job, Limits
from horovod.runner._joined_agent import _forward
from launcher_there import needs_launcher

pytestmark = needs_launcher
OWNER = """
import os
from horovod.runner._job import Job, Limits
job = Job(Limits(2), report=lambda line: None)
child = os.fork()
if child == 0:
    os.read(0, 1)  # the test's end
    os._exit(0)
print(job._process.pid, flush=True)
os.wait()
"""


@pytest.fixture
def forked():
    """A function that forks a process that lives on."""
    children = []

    def fork():
        children.append(os.fork())
        if children[-1] == 0:
            while True:
                signal.pause()

    yield fork
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_forked_process_does_not_keep_the_job(forked):
    job = Job(Limits(2), report=lambda line: None)
    forked()
    job.stop()
    assert job.wait() == 128 + signal.SIGTERM  # it was not killed


def test_job_ends_with_a_killed_owner_although_a_forked_process_survives():
    with subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        daemon = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
        owner.wait()
        assert select.select([daemon], [], [], 20)[0], "the daemon lives on"
        os.close(daemon)


def test_an_output_that_exits_is_given_the_rest():
    """Otherwise the agent would wait for a reader."""
    given = []

    def leave(number, text):
        given.append(text)
        sys.exit(1)

    reader, writer = os.pipe()
    lines = "line\n" * 50000  # more than the pipe and one read have room for

    def write():
        with os.fdopen(writer, "w") as pipe:
            pipe.write(lines)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reader, "rb") as pipe:
        _forward(1, leave, pipe)
    thread.join()
    assert "".join(given) == lines and len(given) > 1


def test_forked_process_does_not_answer_for_the_caller():
    """Otherwise the workers of a job whose caller was killed would wait for answers."""
    with Job(Limits(1), report=lambda line: None) as job:
        job.serve(lambda: None)
        (listener,) = job._server._listeners
        child = os.fork()
        if child == 0:
            os._exit(0 if listener.fileno() == -1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert listener.fileno() != -1
