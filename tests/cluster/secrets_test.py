"""Nothing that `ps` or the environment of ssh shows is a secret of the job."""

import re
from pathlib import Path

from processes import command_line, environment_of

SCRIPTS = Path(__file__).resolve().parent / "scripts"
# What tokens and keys look like: PEM, or a long run of hex or base64 digits.
SECRET = re.compile(r"-----BEGIN|\b[0-9a-fA-F]{24,}\b|(?<![\w/.-])[A-Za-z0-9+]{32,}={0,2}(?![\w/.-])")


def variables(pid):
    return set(environment_of(pid).decode(errors="replace").split("\0"))


def test_arguments_and_environments_hold_no_secret(cluster):
    job = cluster["launcher"].start_command(["horovodrun", "-np", "2", "-H", "a:1,b:1", "python", SCRIPTS / "hold.py"])
    job.stdout.wait_for("holding", 90, count=2)
    users_own = variables(job.pid)
    ssh_clients = [pid for pid in cluster["launcher"].processes() if command_line(pid).startswith("ssh ")]
    assert len(ssh_clients) == 2
    for pid in ssh_clients:
        assert variables(pid) <= users_own
    workers = 0
    for host in cluster:
        for pid in host.processes():
            assert not SECRET.search(command_line(pid)), command_line(pid)
            # The socket's name is random, not secret: the agent answers processes of its own user only.
            added = "\n".join(name for name in variables(pid) - users_own if not name.startswith("HOROVOD_AGENT_SOCKET="))
            assert not SECRET.search(added), added
            workers += "HOROVOD_RANK=" in added and "hold.py" in command_line(pid)
    assert workers == 2


def test_secrets_would_be_recognised():
    for secret in ("-----BEGIN PRIVATE KEY-----", "HOROVOD_TOKEN=" + "0a1b" * 8, "token " + "Zm9vYmFy" * 5 + "=="):
        assert SECRET.search(secret)
    assert not SECRET.search("python /usr/lib/python3/dist-packages/some_module.py --learning-rate 0.1")
