"""The test hosts themselves: if these fail, look here first."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from processes import all_pids, command_line, environment_of, wait_until_none


def test_hosts_reach_each_other_by_ssh_with_checked_host_keys(cluster):
    for source in cluster:
        for target in cluster:
            result = source.run(["ssh", target.name, "hostname"])
            assert (result.returncode, result.stdout) == (0, f"{target.name}\n"), result.stderr


def test_each_host_has_an_interface_name_of_its_own(cluster):
    names = {host.run(["ls", "/sys/class/net"]).stdout.replace("lo\n", "").strip() for host in cluster}
    assert names == {"ens3", "enp1s0f0", "bond7"}


def test_unknown_host_key_is_refused(cluster):
    (cluster["launcher"].home / ".ssh/known_hosts").write_text("")
    result = cluster["launcher"].run(["ssh", "a", "true"])
    assert result.returncode == 255
    assert "Host key verification failed" in result.stderr


def test_leftovers_are_found(cluster):
    host = cluster["a"]
    assert cluster.leftovers() == []
    listener = host.start_command(
        [sys.executable, "-c", "import socket; s = socket.create_server(('', 0)); print(1, flush=True); s.accept()"]
    )
    listener.stdout.wait_for("1")
    host.run(["touch", "/tmp/left", "/dev/shm/left"])
    left = "\n".join(host.leftovers(timeout=0))
    for sign in ("socket.create_server", "port tcp 00000000:", "file /tmp/left", "file /dev/shm/left"):
        assert sign in left
    assert not Path("/dev/shm/left").exists()
    os.kill(listener.pid, signal.SIGKILL)
    host.run(["rm", "/tmp/left", "/dev/shm/left"])
    assert host.leftovers() == []


def test_killed_sshd_ends_its_sessions(cluster):
    session = cluster["launcher"].start_command(["ssh", "a", "echo started; exec cat"], stdin=subprocess.PIPE)
    session.stdout.wait_for("started")
    cluster["a"].kill_sshd()
    assert session.wait() == 255


def test_cut_host_is_not_reached(cluster):
    cluster["a"].cut()
    result = cluster["launcher"].run(["ssh", "-o", "ConnectTimeout=1", "a", "true"])
    assert result.returncode == 255


def reaches(source, target, attempts=1, patience=2):
    """Returns whether a command there gives output of more than one frame."""
    options = ["-o", f"ConnectTimeout={patience}", "-o", f"ConnectionAttempts={attempts}"]
    return source.run(["ssh", *options, target, "head -c 200000 /dev/zero"]).returncode == 0


@pytest.mark.parametrize("cut", ["cut_from", "cut_to", "cut_both"])
def test_cut_link_heals(cluster, cut):
    host = cluster["a"]
    getattr(host, cut)()
    assert not reaches(cluster["b"], "a")
    host.heal()
    assert reaches(cluster["b"], "a", attempts=5)  # a neighbour that did not answer is not asked for a moment
    assert reaches(host, "b")


def test_slow_and_lossy_link_still_carries(cluster):
    cluster["a"].set_link(from_host={"delay": 0.1, "loss": 0.1}, to_host={"delay": 0.1, "loss": 0.1})
    started = time.monotonic()
    # A lost frame costs a second, or more if it is lost again.
    assert reaches(cluster["b"], "a", attempts=10, patience=20)
    assert time.monotonic() - started > 0.4, "two round trips at the least"


def test_nothing_is_left_when_the_test_process_is_killed(tmp_path):
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]; import netns\n"
        "with netns.Cluster(['x', 'y'], sys.argv[1]) as c:\n"
        "    r = c['x'].start_command(['ssh', 'y', 'echo up; exec cat'], stdin=-1)\n"
        "    r.stdout.wait_for('up'); print('running', flush=True); sys.stdin.read()\n"
    )
    mark = f"HVD_TEST_MARK={os.getpid()}-{time.monotonic_ns()}".encode()
    environment = dict(os.environ, HVD_TEST_MARK=mark.decode().partition("=")[2])
    test = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), *sys.path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert test.stdout.readline() == "running\n"
    ours = [pid for pid in all_pids() if mark in environment_of(pid)]
    assert any("sshd" in command_line(pid) for pid in ours)
    test.kill()
    test.wait()
    assert wait_until_none(lambda: [pid for pid in ours if mark in environment_of(pid)]) == []
