"""A host that can't take part: one line of output names it, the exit code is 2, and nothing is started on any host."""

import re
import shutil
from pathlib import Path

import pytest

from netns import REPOSITORY, make_key


@pytest.fixture
def refused(cluster, tmp_path):
    """Runs a job that must be refused; checks what is common to all refusals and returns the line."""

    def run(hosts, *options, command=None):
        started = tmp_path / "started"
        argv = ["horovodrun", "-np", str(hosts.count(":")), "-H", hosts, *options, *(command or ["touch", started])]
        result = cluster["launcher"].run(argv, timeout=60)
        # If it has to wait for some seconds, horovodrun prints a line that says so.
        lines = [
            line
            for line in result.stderr.splitlines()
            if line.strip() and not line.startswith("horovodrun: waiting for")
        ]
        assert result.returncode == 2, result.stderr
        assert len(lines) == 1, result.stderr
        assert result.stdout == ""
        assert not started.exists()
        assert cluster.leftovers() == []
        return lines[0]

    return run


def test_unresolvable_host(refused):
    line = refused("a:1,no-such-host:1")
    assert "no-such-host" in line and "resolved" in line


def test_unreachable_host(refused):
    assert "10.77.0.99" in refused("a:1,10.77.0.99:1")


def test_host_without_sshd(cluster, refused):
    cluster["b"].kill_sshd()
    line = refused("a:1,b:1")
    assert "b: " in line and "sshd" in line


def test_wrong_port(refused):
    line = refused("a:1", "-p", "2222")
    assert "a: " in line and "--ssh-port" in line


def test_wrong_user_key(tmp_path, refused, cluster):
    make_key(tmp_path / "stranger", "stranger")
    (cluster["b"].home / ".ssh/authorized_keys").write_text((tmp_path / "stranger.pub").read_text())
    line = refused("a:1,b:1")
    assert "b: " in line and "Permission denied" in line


def test_unknown_host_key(cluster, refused):
    known_hosts = cluster["launcher"].home / ".ssh/known_hosts"
    known_hosts.write_text(
        "".join(line + "\n" for line in known_hosts.read_text().splitlines() if not line.startswith("b,"))
    )
    line = refused("a:1,b:1")
    assert "b: " in line and "known_hosts" in line


def test_changed_host_key(cluster, refused, tmp_path):
    known_hosts = cluster["launcher"].home / ".ssh/known_hosts"
    other = make_key(tmp_path / "other_host", "other").strip()
    known_hosts.write_text(re.sub(r"^(b,\S+) .*$", rf"\1 {other}", known_hosts.read_text(), flags=re.M))
    line = refused("a:1,b:1")
    assert "b: " in line and "ssh-keygen -R" in line


def test_host_without_agent(cluster, refused):
    cluster["b"].hide(binary_directory())
    line = refused("a:1,b:1")
    assert "b: " in line and "horovod-agent" in line and "install" in line


def test_host_with_another_version(cluster, refused, tmp_path):
    agent = binary_directory() / "horovod-agent"
    version = re.search(r'kVersion\[\] = "([^"]+)"', (REPOSITORY / "base/version.h").read_text()).group(1)
    other = tmp_path / "horovod-agent"
    other.write_bytes(agent.read_bytes().replace(version.encode() + b"\0", b"9.9.9\0"))
    other.chmod(0o755)
    cluster["b"].put_over(other, agent)
    line = refused("a:1,b:1")
    assert "b: " in line and version in line and "9.9.9" in line


def test_command_that_is_not_found(refused):
    line = refused("a:1,b:1", command=["no-such-program", "--flag"])
    assert "no-such-program" in line and re.search(r"\b[ab]\b", line)


def test_command_that_only_one_host_has(cluster, refused, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/only-on-a"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    cluster["b"].hide(program.parent)
    line = refused("a:1,b:1", command=[program])
    assert "only-on-a" in line and re.search(r"\bb\b", line)


def binary_directory():
    return Path(shutil.which("horovod-agent")).resolve().parent
