"""Other processes of the same user, in other containers or beside the job, at the sockets of a job."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from processes import command_line, environment_of, pids_with

HERE = Path(__file__).resolve().parent
JOB = HERE / "jobs" / "waits_for_a_file.py"
ASK = HERE / "scripts" / "ask_agent.py"
# Processes, file systems, System V objects and the host's name are others; the network is the same, as with `docker run --net=host`.
CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--ipc", "--uts", "--mount-proc"]


@pytest.fixture(params=["--min-np 2", ""], ids=["elastic", "static"])
def job(request, horovodrun, tmp_path):
    """A job of two workers that trains; it must not mind what happens in the test."""
    job = horovodrun.start(
        "-np",
        "2",
        *request.param.split(),
        sys.executable,
        JOB,
        env={"OMP_NUM_THREADS": "1", "STRANGERS": str(tmp_path)},
    )
    job.stdout.wait_for(r"step 5$", 60)
    yield job
    (tmp_path / "end").touch()
    assert job.wait() == 0, job.everything()


def place_of_workers(tmp_path):
    """The agent's socket, and the workers' words: what only the job and who may look into its processes know."""
    sockets, words = set(), set()
    for pid in pids_with(f"STRANGERS={tmp_path}\0".encode()):
        variables = dict(entry.partition("=")[::2] for entry in environment_of(pid).decode().split("\0"))
        if str(JOB) in command_line(pid) and "HOROVOD_WORKER_WORD" in variables:
            sockets.add(variables["HOROVOD_AGENT_SOCKET"])
            words.add(variables["HOROVOD_WORKER_WORD"])
    assert len(sockets) == 1 and len(words) == 2
    return sockets.pop(), sorted(words)


def ask(wrapper, agent, words):
    done = subprocess.run([*wrapper, sys.executable, ASK, agent, *words], capture_output=True, text=True, timeout=120)
    if wrapper and done.returncode != 0 and "unshare" in done.stderr:
        pytest.skip(f"no other container to be had here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("wrapper", [CONTAINER, []], ids=["other-container", "same-container"])
def test_strangers_get_nothing_from_an_agent(job, tmp_path, wrapper):
    agent, words = place_of_workers(tmp_path)
    answers = ask(wrapper, agent, ["", "0" * 32, *words])
    assert len(answers) == 3 * 4
    for answer in answers:
        assert not answer["key"] and answer["descriptors"] == 0, answer
        assert "this process" in answer["text"] or "runs no worker 3" in answer["text"], answer


def test_who_speaks_no_tls_leaves_no_line_on_the_terminal(horovodrun, tmp_path):
    job = horovodrun.start("-np", "1", "--verbose", sys.executable, JOB, env={"OMP_NUM_THREADS": "1"}, cwd=tmp_path)
    port = int(job.stderr.wait_for(r"the daemon listens on 127\.0\.0\.1:(\d+)", 60)[1])
    job.stdout.wait_for(r"step 5$", 60)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port)) as scanner:
            scanner.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while scanner.recv(1000):
                pass  # until it is hung up on
    (tmp_path / "end").touch()
    assert job.wait() == 0, job.everything()
    others = [line for line in job.stderr.text.splitlines() if not line.startswith(("horovodrun: ", "  "))]
    assert others == [], job.everything()
