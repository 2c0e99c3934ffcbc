"""Names of horovod.runner that users' code imports. Needs horovodrun; runs in one process."""

import sys

import pytest

from horovod.runner import _HorovodArgs
from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.runner.common.util.hosts import (
    HostInfo,
    get_host_assignments,
    parse_host_files,
    parse_hosts,
)
from horovod.runner.launch import _run
from test_run_api import needs_launcher


def test_hosts_are_parsed():
    assert parse_hosts("worker-0:2,worker_1.x:1") == [
        HostInfo("worker-0", 2),
        HostInfo("worker_1.x", 1),
    ]
    for bad in ("h", "h:", "h:x", ":2", "h:1,,g:1", "h:-1"):
        with pytest.raises(ValueError, match="Invalid host input, please make sure it has format"):
            parse_hosts(bad)


def test_host_files_are_parsed(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# ours\nh1 slots=2\n\nh2   slots=4\n")
    assert parse_host_files(str(path)) == "h1:2,h2:4"
    path.write_text("h1 slots=2\nh2 4\n")
    with pytest.raises(ValueError, match="hosts:2: a host is given as 'name slots=N', not 'h2 4'"):
        parse_host_files(str(path))


def test_ranks_are_assigned_host_by_host():
    slots = get_host_assignments(parse_hosts("a:2,b:1,c:4"), 2, 5)
    rows = [tuple(slot) for slot in slots]
    assert rows == [
        ("a", 0, 0, 0, 5, 2, 3),
        ("a", 1, 1, 0, 5, 2, 2),
        ("b", 2, 0, 1, 5, 1, 3),
        ("c", 3, 0, 2, 5, 2, 3),
        ("c", 4, 1, 1, 5, 2, 2),
    ]
    assert slots[4].to_response_string() == "4,5,1,2,1,2"
    assert len(get_host_assignments(parse_hosts("a:2,a:2"), 1)) == 4
    with pytest.raises(ValueError, match=r"processes \(3\) than there are available slots \(2\)"):
        get_host_assignments(parse_hosts("a:2"), 3)


def test_rank_and_size_of_other_launchers(monkeypatch):
    for name in ("HOROVOD_RANK", "HOROVOD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert get_env_rank_and_size() == (0, 1)
    monkeypatch.setenv("PMI_RANK", "1")
    with pytest.raises(RuntimeError, match="only one of PMI_RANK and PMI_SIZE"):
        get_env_rank_and_size()
    monkeypatch.setenv("PMI_SIZE", "3")
    assert get_env_rank_and_size() == (1, 3)
    monkeypatch.setenv("HOROVOD_RANK", "0")
    monkeypatch.setenv("HOROVOD_SIZE", "2")
    assert get_env_rank_and_size() == (0, 2)


@needs_launcher
def test_commands_run(tmp_path):
    settings = _HorovodArgs()
    settings.num_proc = 2
    code = "import os, pathlib; pathlib.Path(os.environ['HOROVOD_RANK']).touch()"
    settings.command = ["sh", "-c", 'cd "$0" && "$1" -c "$2"', str(tmp_path), sys.executable, code]
    assert _run(settings) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]
    settings.command = ["false"]
    with pytest.raises(RuntimeError, match="one or more processes exited with non-zero status"):
        _run(settings)


def test_unknown_settings_can_not_be_given():
    with pytest.raises(AttributeError):
        _HorovodArgs().nodes = "a"
    with pytest.raises(ValueError, match="One of run_func and command"):
        _run(_HorovodArgs())
