"""The line at the bottom of a terminal that says what an elastic job is doing."""

import os
import re
import subprocess

import pytest

from terminal import Terminal

ELASTIC = ["--min-np", "2", "--max-np", "2", "-H", "localhost:2"]
STATUS = re.compile(
    r"^forming: waiting for \d workers?: none is ready, \d (is|are) starting; this wait ends in \w+ at the latest$"
)


@pytest.fixture
def gate(tmp_path):
    """Workers that read it continue when it is closed."""
    os.mkfifo(tmp_path / "gate")
    descriptor = os.open(tmp_path / "gate", os.O_RDWR)
    open_ones = [descriptor]

    def close():
        if open_ones:
            os.close(open_ones.pop())

    yield close
    close()


@pytest.fixture
def run(tmp_path):
    terminals = []

    def start(*arguments, term="xterm", **options):
        environment = {**os.environ, "TERM": term}
        terminals.append(Terminal(["horovodrun", *arguments], cwd=tmp_path, env=environment, **options))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def worker(before="", after=""):
    return ["sh", "-c", f"exec 3<gate; {before} echo up; cat <&3; {after} exit 0"]


def ups(lines):
    return sum(line.endswith(":up") for line in lines)


def test_line_stays_below_the_output_and_goes_with_the_job(run, gate):
    job = run("-np", "2", *ELASTIC, *worker(after="seq 100;"))
    job.wait_until(lambda lines: ups(lines) == 2 and STATUS.match(lines[-1]))
    gate()
    job.wait()
    for rank in (0, 1):
        prefix = f"[{rank}]<stdout>:"
        own = [line[len(prefix) :] for line in job.lines if line.startswith(prefix)]
        assert own == ["up", *map(str, range(1, 101))]
    others = [line for line in job.lines if not re.match(r"\[[01]\]<stdout>:", line)]
    assert all(line.startswith("horovodrun: ") for line in others), others


def test_line_is_cut_to_the_width(run, gate):
    job = run("-np", "2", *ELASTIC, *worker(), columns=20)
    job.wait_until(lambda lines: ups(lines) == 2 and lines[-1] == "forming: waiting fo")
    gate()
    job.wait()


def test_progress_bars_stay_above_the_line(run, gate):
    script = worker(before="exec >&2; printf '50%%\\r';", after="echo 100%;")
    script[2] = script[2].replace("echo up;", "")
    job = run("-np", "1", "--min-np", "1", "-H", "localhost:1", *script)
    job.wait_until(lambda lines: lines[:1] == ["[0]<stderr>:50%"] and STATUS.match(lines[-1]))
    gate()
    job.wait()
    assert job.lines[0] == "[0]<stderr>:100%"


def test_control_c_with_the_line_shown(run, gate):
    job = run("-np", "2", *ELASTIC, *worker())
    job.wait_until(lambda lines: ups(lines) == 2 and STATUS.match(lines[-1]))
    job.type(b"\x03")
    assert job.wait() == 130
    assert any("interrupted by SIGINT" in line for line in job.lines)
    assert not any("forming" in line for line in job.lines), job.lines


def test_control_c_at_a_stopped_terminal(run, gate, tmp_path):
    """The first one ends the workers; what is still to be read keeps the launcher until the second."""
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    job = run("-np", "2", *ELASTIC, *worker(before="exec 4>alive; echo x >&4;"))
    job.wait_until(lambda lines: ups(lines) == 2 and STATUS.match(lines[-1]))
    job.stop_output()
    job.type(b"\x03")
    os.set_blocking(alive, True)
    while os.read(alive, 1):
        pass
    os.close(alive)
    job.type(b"\x03")
    assert job.popen.wait(60) == 130


def test_stopped_terminal_loses_and_reorders_nothing(run, gate, tmp_path):
    os.mkfifo(tmp_path / "written")
    written = os.open(tmp_path / "written", os.O_RDWR)
    job = run("-np", "2", *ELASTIC, *worker(after="seq 1000; echo x >written;"))
    job.wait_until(lambda lines: ups(lines) == 2 and STATUS.match(lines[-1]))
    job.stop_output()
    gate()
    for _ in range(2):
        assert os.read(written, 2) == b"x\n"
    os.close(written)
    job.resume_output()
    job.wait()
    for rank in (0, 1):
        prefix = f"[{rank}]<stdout>:"
        assert [line[len(prefix) :] for line in job.lines if line.startswith(prefix)] == [
            "up",
            *map(str, range(1, 1001)),
        ]


@pytest.mark.parametrize("why", ["static", "dumb", "pipe"])
def test_no_line_where_none_belongs(run, gate, why):
    options = {"term": "dumb"} if why == "dumb" else {}
    if why == "pipe":
        options["redirect"] = {"stderr": subprocess.DEVNULL}
    job = run("-np", "2", *(["-H", "localhost:2"] if why == "static" else ELASTIC), *worker(), **options)
    job.wait_until(lambda lines: ups(lines) == 2)
    gate()
    job.wait()
    assert "\x1b" not in job.sent and "forming" not in job.sent
