"""horovod.run without a script: typed into an interpreter that continues afterwards."""

import os
import signal
import subprocess
import sys
import time

import pytest

from processes import Running, pids_with, wait_until_none

DEFINITIONS = """
import os, threading, horovod
base = 100

def work(factor):
    import horovod.torch as hvd
    hvd.init()
    return base + factor * hvd.rank()

def sleep():
    import time
    print("asleep", flush=True)
    time.sleep(1000)

def held():
    return (sorted(os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)),
            threading.active_count())

before = held()
"""


class Interpreter:
    """An interactive Python; what comes of it carries a mark in its environment."""

    def __init__(self, directory):
        self._temporary = directory / "tmp"
        self._temporary.mkdir()
        self._mark = f"notebook-{os.getpid()}-{time.monotonic_ns()}"
        environment = {
            **os.environ,
            "HVD_TEST_MARK": self._mark,
            "TMPDIR": str(self._temporary),
            "PYTHONUNBUFFERED": "1",
        }
        self.running = Running([sys.executable, "-i", "-q"], env=environment, cwd=directory, stdin=subprocess.PIPE)
        # Defined line by line, as in the cells of a notebook, and so in __main__ without a file.
        self.type(f"exec({DEFINITIONS!r})")

    def type(self, line):
        self.running.popen.stdin.write(line + "\n")
        self.running.popen.stdin.flush()

    def wait_for(self, pattern, timeout=60, count=1):
        return self.running.stdout.wait_for(pattern, timeout, count)

    def others(self):
        """Processes that came of it, beside itself."""
        return [pid for pid in pids_with(f"HVD_TEST_MARK={self._mark}\0".encode()) if pid != self.running.pid]

    def nothing_is_left(self):
        return wait_until_none(self.others) == [] and os.listdir(self._temporary) == []

    def close(self):
        self.running.end()
        wait_until_none(self.others)


@pytest.fixture
def interpreter(tmp_path):
    interpreter = Interpreter(tmp_path)
    yield interpreter
    interpreter.close()


def test_function_of_main_runs_twice_and_leaves_nothing(interpreter):
    for factor in (5, 7):
        interpreter.type(f"print('got', horovod.run(work, ({factor},), num_proc=2))")
        interpreter.wait_for(rf"^got \[100, {100 + factor}\]$")
    interpreter.type("print('held the same:', held() == before or (before, held()))")
    interpreter.wait_for("^held the same: True$")
    assert interpreter.nothing_is_left()


def test_interrupt_in_the_middle_leaves_nothing_and_the_next_run_works(interpreter):
    interpreter.type("horovod.run(sleep, num_proc=2)")
    interpreter.wait_for("asleep", count=2)
    interpreter.running.signal(signal.SIGINT)
    interpreter.running.stderr.wait_for("^KeyboardInterrupt")
    interpreter.type("print('held the same:', held() == before or (before, held()))")
    interpreter.wait_for("^held the same: True$")
    assert interpreter.nothing_is_left()
    interpreter.type("print('got', horovod.run(work, (1,), num_proc=2))")
    interpreter.wait_for(r"^got \[100, 101\]$")


def test_killed_interpreter_takes_its_job_with_it(interpreter):
    interpreter.type("horovod.run(sleep, num_proc=2)")
    interpreter.wait_for("asleep", count=2)
    interpreter.running.signal(signal.SIGKILL)
    interpreter.running.wait()
    interpreter.running.stderr.wait_for(
        "horovodrun: the program that started horovodrun is gone .*stopping 2 processes$"
    )
    assert interpreter.nothing_is_left()
    assert "SIGHUP" not in interpreter.running.stderr.text and "Ctrl-C" not in interpreter.running.stderr.text
