"""Neither `ps` nor the environment of ssh shows a secret of the job."""

import re
from pathlib import Path

from processes import command_line, environment_of

SCRIPTS = Path(__file__).resolve().parent / "scripts"
# What tokens and keys look like: PEM, or a long run of hex or base64 digits.
SECRET = re.compile(r"-----BEGIN|\b[0-9a-fA-F]{24,}\b|(?<![\w/.-])[A-Za-z0-9+]{32,}={0,2}(?![\w/.-])")

# The agent's socket can be found by everybody, and the word is of use to processes that the agent has started only (tests/e2e/strangers_test.py).
# A run's name is that of the job, which opens nothing.
RANDOM_NOT_SECRET = ("HOROVOD_AGENT_SOCKET=", "HOROVOD_WORKER_WORD=", "HOROVOD_MEMBER=", "TORCHELASTIC_RUN_ID=")


def variables(pid):
    return set(environment_of(pid).decode(errors="replace").split("\0"))


def workers_without_secrets(cluster, users_own, name):
    """How many workers there are, by a part of their command line, when nothing that any process shows is secret."""
    workers = 0
    for host in cluster:
        for pid in host.processes():
            assert not SECRET.search(command_line(pid)), command_line(pid)
            added = "\n".join(name for name in variables(pid) - users_own if not name.startswith(RANDOM_NOT_SECRET))
            assert not SECRET.search(added), added
            workers += "HOROVOD_RANK=" in added and name in command_line(pid)
    return workers


def test_arguments_and_environments_hold_no_secret(cluster):
    job = cluster["launcher"].start_command(["horovodrun", "-np", "2", "-H", "a:1,b:1", "python", SCRIPTS / "hold.py"])
    job.stdout.wait_for("holding", 90, count=2)
    users_own = variables(job.pid)
    ssh_clients = [pid for pid in cluster["launcher"].processes() if command_line(pid).startswith("ssh ")]
    assert len(ssh_clients) == 2
    for pid in ssh_clients:
        assert variables(pid) <= users_own
    assert workers_without_secrets(cluster, users_own, "hold.py") == 2


def test_functions_of_horovod_run_and_host_discovery_see_no_secret(cluster, tmp_path):
    script = tmp_path / "hosts.sh"
    seen = tmp_path / "seen"
    script.write_text(f"#!/bin/sh\n(env; ls -l /proc/$$/fd) >{seen}.new; mv {seen}.new {seen}; echo a:1; echo b:1\n")
    script.chmod(0o755)
    job = cluster["launcher"].start_command(["python", SCRIPTS / "hold_function.py", script])
    job.stdout.wait_for("holding", 90, count=2)
    users_own = variables(job.pid)
    assert workers_without_secrets(cluster, users_own, "run_task") == 2
    discovery = seen.read_text()
    added = "\n".join(set(discovery.splitlines()) - users_own)
    assert "PYTHONPATH=" in discovery and not SECRET.search(added), added
    assert "socket:" not in discovery and "memfd:" not in discovery


def test_secrets_would_be_recognised():
    for secret in ("-----BEGIN PRIVATE KEY-----", "HOROVOD_TOKEN=" + "0a1b" * 8, "token " + "Zm9vYmFy" * 5 + "=="):
        assert SECRET.search(secret)
    assert not SECRET.search("python /usr/lib/python3/dist-packages/some_module.py --learning-rate 0.1")
