"""torchrun with --rdzv-backend=horovod: its nodes are workers of a job of horovod-rendezvousd. Needs a torch that looks for plug-ins: pip's."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from joinable import Joinable

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).resolve().parent / "jobs" / "torchrun_nodes.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend=horovod", "--nproc-per-node=2"]


def entry_points():
    """As tools/wheel.py writes them."""
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    entries = project["entry-points"]["torchrun.handlers"]
    return "[torchrun.handlers]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())


class Nodes:
    """A daemon, and torchruns that are its nodes, each with two ranks."""

    def __init__(self, directory):
        installed = directory / "installed" / "horovod-0.dist-info"
        installed.mkdir(parents=True)
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0\n")
        (installed / "entry_points.txt").write_text(entry_points())
        self.environment = {"PYTHONPATH": f"{os.environ['PYTHONPATH']}:{installed.parent}"}
        self.joinable = Joinable(directory)
        self.stop_file = directory / "stop"
        self.nnodes = self.address = ""

    def start_daemon(self, least, most, *more):
        limits = ("--np", least, "--min-np", least, "--max-np", most)
        command = ("horovod-rendezvousd", "--listen", "127.0.0.1:0", "--token-file", "token", *limits, *more)
        daemon = self.joinable.start(*command)
        self.address = daemon.stdout.wait_for(r"^(127\.0\.0\.1:\d+)$").group(1)
        self.nnodes = f"{least}:{most}"
        return daemon

    def torchrun(self, *arguments):
        return self.joinable.start(*TORCHRUN, *arguments, **self.environment)

    def start(self, name):
        conf = f"--rdzv-conf=credentials=token,host={name}"
        place = (f"--nnodes={self.nnodes}", f"--rdzv-endpoint={self.address}", "--rdzv-id=job", conf)
        return self.torchrun(*place, "--max-restarts=3", SCRIPT, self.stop_file)

    def drain(self, name):
        command = ["horovodrun", "drain", name, "--connect", self.address, "--token-file", "token"]
        return subprocess.run(command, cwd=self.joinable.directory, capture_output=True, text=True, timeout=60)

    def end(self, daemon, *nodes):
        """Ends the script. All succeed."""
        self.stop_file.touch()
        for node in nodes:
            assert node.wait(120) == 0, node.everything()
        assert daemon.wait() == 0, daemon.everything()


@pytest.fixture
def nodes(tmp_path):
    nodes = Nodes(tmp_path)
    yield nodes
    nodes.stop_file.touch()  # the workers of a torchrun that was killed go on without it
    nodes.joinable.close()


def wait_for_size(size, *running, count=1):
    """Until the ranks of these nodes are in a group of that size, for the `count`th time."""
    return [node.stdout.wait_for(rf"^rank \d+ of {size} .*pid (\d+)$", 120, count=2 * count) for node in running]


def test_two_nodes_are_one_group(nodes):
    daemon = nodes.start_daemon(2, 2)
    a, b = nodes.start("a"), nodes.start("b")
    wait_for_size(4, a, b)
    nodes.end(daemon, a, b)
    assert sorted(re.findall(r"^(rank \d of \d) done$", a.stdout.text + b.stdout.text, re.M)) == [
        f"rank {rank} of 4" for rank in range(4)
    ]
    groups = {re.findall(r"group (\d)", node.stdout.text)[0] for node in (a, b)}
    assert groups == {"0", "1"}


def test_a_node_that_comes_later_enlarges_the_group(nodes):
    daemon = nodes.start_daemon(1, 2)
    a = nodes.start("a")
    wait_for_size(2, a)
    b = nodes.start("b")
    wait_for_size(4, a, b)
    nodes.end(daemon, a, b)


def test_a_killed_node_is_replaced_by_one_that_waits(nodes):
    daemon = nodes.start_daemon(2, 2)
    a, b = nodes.start("a"), nodes.start("b")
    wait_for_size(4, a, b)
    c = nodes.start("c")
    daemon.stderr.wait_for("^.*host c ")
    assert "rank" not in c.stdout.text
    a.signal(signal.SIGKILL)
    wait_for_size(4, b, count=2)
    wait_for_size(4, c)
    nodes.end(daemon, b, c)


def test_a_killed_node_makes_the_group_smaller(nodes):
    daemon = nodes.start_daemon(1, 2)
    a = nodes.start("a")
    wait_for_size(2, a)
    b = nodes.start("b")
    wait_for_size(4, a, b)
    a.signal(signal.SIGKILL)
    wait_for_size(2, b)
    nodes.end(daemon, b)


def test_a_killed_worker_restarts_the_group(nodes):
    daemon = nodes.start_daemon(2, 2)
    a, b = nodes.start("a"), nodes.start("b")
    of_a, _ = wait_for_size(4, a, b)
    os.kill(int(of_a.group(1)), signal.SIGKILL)
    wait_for_size(4, a, b, count=2)
    nodes.end(daemon, a, b)


@pytest.mark.parametrize("how", ["drain", "SIGTERM"])
def test_a_drained_node_leaves(nodes, how):
    daemon = nodes.start_daemon(1, 2)
    a = nodes.start("a")
    wait_for_size(2, a)
    b = nodes.start("b")
    wait_for_size(4, a, b)
    if how == "drain":
        drained = nodes.drain("b")
        assert drained.returncode == 0, drained.stderr
        assert b.wait(120) == 0, b.everything()
        assert b.stderr.text.splitlines()[-1] == "torchrun: this node leaves: host b leaves the job"
    else:
        b.signal(signal.SIGTERM)
        b.wait(120)
    wait_for_size(2, a, count=2)
    nodes.end(daemon, a)
    assert "fail" not in daemon.stderr.text, daemon.everything()


def test_the_job_survives_its_daemon(nodes):
    daemon = nodes.start_daemon(1, 3, "--state-dir", "state")
    a, b = nodes.start("a"), nodes.start("b")
    wait_for_size(4, a, b)
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    daemon = nodes.start_daemon(1, 3, "--state-dir", "state")
    c = nodes.start("c")
    wait_for_size(6, a, b, c)
    nodes.end(daemon, a, b, c)


def test_the_end_of_the_job_ends_the_nodes(nodes):
    daemon = nodes.start_daemon(1, 2)
    a = nodes.start("a")
    wait_for_size(2, a)
    daemon.signal(signal.SIGTERM)
    assert a.wait(120) == 1, a.everything()
    assert "torchrun: --rdzv-backend=horovod: " in a.stderr.text, a.everything()


def test_a_job_of_one_node_needs_no_daemon(nodes):
    nodes.stop_file.touch()
    node = nodes.torchrun("--nnodes=1", SCRIPT, nodes.stop_file)
    assert node.wait(120) == 0, node.everything()
    assert node.stdout.text.count("of 2 done") == 2


def test_a_script_that_fails_ends_its_node_with_torchruns_report(nodes, tmp_path):
    (tmp_path / "fails.py").write_text("raise SystemExit(3)\n")
    node = nodes.torchrun("--nnodes=1", "fails.py")
    assert node.wait(120) == 1
    assert re.search(r"exitcode +: 3", node.stderr.text), node.everything()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--nnodes=1:2"], "--rdzv-endpoint is missing, and --nnodes is 1:2"),
        (["--nnodes=1:2", "--rdzv-endpoint=ADDRESS"], "--rdzv-conf credentials=FILE is missing"),
        (["--rdzv-endpoint=ADDRESS", "--rdzv-conf=credentials=none"], "none can't be read: No such file"),
        (
            ["--rdzv-endpoint=ADDRESS", "--rdzv-conf=credentials=wrong"],
            "wrong does not hold what horovod-rendezvousd writes",
        ),
        (["--rdzv-endpoint=ADDRESS", "--rdzv-conf=credentials=token,hosts=a"], "--rdzv-conf: hosts is not known here"),
        (
            ["--rdzv-endpoint=ADDRESS", "--rdzv-conf=credentials=token", "--nnodes=3:4"],
            "--nnodes 3:4 does not fit the job",
        ),
        (["--rdzv-endpoint=127.0.0.1:1", "--rdzv-conf=credentials=token,start_timeout=0"], "can't be reached"),
        (["--rdzv-endpoint=nonsense", "--rdzv-conf=credentials=token"], "'nonsense' is not a host and a port"),
    ],
)
def test_bad_input_is_one_line(nodes, tmp_path, arguments, said):
    nodes.start_daemon(1, 2)
    (tmp_path / "wrong").write_text("nonsense\n")
    (tmp_path / "wrong").chmod(0o600)
    words = [word.replace("ADDRESS", nodes.address) for word in arguments]
    if not any(word.startswith("--nnodes") for word in words):
        words.append("--nnodes=1:2")
    node = nodes.torchrun(*words, SCRIPT, nodes.stop_file)
    assert node.wait() == 1, node.everything()
    lines = [line for line in node.stderr.text.splitlines() if "master_addr is only used" not in line]
    assert len(lines) == 1 and lines[0].startswith("torchrun: --rdzv-backend=horovod: "), node.everything()
    assert said in lines[0]


def test_a_node_of_another_run_is_refused(nodes):
    daemon = nodes.start_daemon(1, 2)
    a = nodes.start("a")
    wait_for_size(2, a)
    place = (f"--nnodes={nodes.nnodes}", f"--rdzv-endpoint={nodes.address}", "--rdzv-conf=credentials=token,host=b")
    b = nodes.torchrun(*place, "--rdzv-id=other", SCRIPT, nodes.stop_file)
    assert b.wait() == 1, b.everything()
    assert "--rdzv-id is other here, and job on the other nodes" in b.stderr.text, b.everything()
    wait_for_size(2, a, count=2)
    nodes.end(daemon, a)


def test_a_store_waits_for_no_node_of_a_world_that_has_ended():
    """A node that is lost between the rendezvous and the start of the workers."""
    from torch.distributed import TCPStore

    from horovod.torchrun._store import WorldStore

    ended = []
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    store = WorldStore(TCPStore("127.0.0.1", server.port, is_master=False), lambda: bool(ended), 2)
    store.set("role_info/0", b"mine")
    store.set("role_info/1", b"its")
    assert store.multi_get(["role_info/0", "role_info/1"]) == [b"mine", b"its"] and store.get("role_info/1") == b"its"
    assert store.add("count", 2) == 2 and store.timeout.total_seconds() == 300
    ended.append(True)
    store.set("role_info/0", b"mine")
    assert store.multi_get(["role_info/0", "role_info/2"]) == [b"mine", b"mine"]
    assert store.get("assigned_ranks/0") == b"[0, 2, 0, 2]"
    store.wait(["never"])
