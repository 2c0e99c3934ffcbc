"""Names of horovod.runner that users' code imports. Needs horovodrun; runs in one process."""

import functools
import io
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from horovod.common.util import env, split_list
from horovod.runner import _HorovodArgs
from horovod.runner.common.util import config_parser, safe_shell_exec
from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.runner.common.util.hosts import (
    HostInfo,
    get_host_assignments,
    parse_host_files,
    parse_hosts,
)
from horovod.runner.launch import _run, _run_elastic, find_program, parse_args
from horovod.runner.util.threads import execute_function_multithreaded, in_thread, on_event
from launcher_there import needs_launcher


def test_hosts_are_parsed():
    assert parse_hosts("worker-0:2,worker_1.x:1") == [
        HostInfo("worker-0", 2),
        HostInfo("worker_1.x", 1),
    ]
    for bad in ("h", "h:", "h:x", ":2", "h:1,,g:1", "h:-1"):
        with pytest.raises(ValueError, match="write HOST:SLOTS"):
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
    with pytest.raises(ValueError, match=r"3 processes need 3 slots, but the hosts have 2"):
        get_host_assignments(parse_hosts("a:2"), 3)


@needs_launcher
def test_ranks_are_assigned_as_by_horovodrun():
    hosts = "a:2,b:1,c:4"
    command = [find_program("horovodrun"), "--dry-run", "-np", "5", "-H", hosts, "true"]
    plan = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in plan.splitlines() if re.match(r"^( +[0-9]+){5}  \S+$", line)]
    slots = get_host_assignments(parse_hosts(hosts), 5, 5)
    assert rows == [
        [str(field) for field in (slot.rank, slot.local_rank, slot.local_size, slot.cross_rank, slot.cross_size)]
        + [slot.hostname]
        for slot in slots
    ]


def test_rank_and_size_of_other_launchers(monkeypatch):
    for name in ("HOROVOD_RANK", "HOROVOD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert get_env_rank_and_size() == (0, 1)
    monkeypatch.setenv("PMI_RANK", "1")
    with pytest.raises(RuntimeError, match="has one of PMI_RANK and PMI_SIZE"):
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
    with pytest.raises(RuntimeError, match="The Horovod job failed: horovodrun ended with status"):
        _run(settings)


def test_unknown_settings_can_not_be_given():
    with pytest.raises(AttributeError):
        _HorovodArgs().nodes = "a"
    with pytest.raises(ValueError, match="One of run_func and command"):
        _run(_HorovodArgs())


@pytest.fixture
def parsed(monkeypatch):
    """Parses a command line of horovodrun's; returns the settings and the variables for them."""

    def parse(*arguments):
        monkeypatch.setattr(sys, "argv", ["horovodrun", "-np", "2", *arguments])
        settings = parse_args()
        return settings, config_parser.set_env_from_args({}, settings)

    return parse


def test_flags_become_settings_and_variables(parsed):
    settings, variables = parsed(
        *("--fusion-threshold-mb", "10", "--cycle-time-ms", "20", "--cache-capacity", "512"),
        *("--hierarchical-allreduce", "--no-hierarchical-allgather", "-H", "a:1,b:1"),
        *("--stall-check-warning-time-seconds", "10", "--log-level", "INFO"),
        *("--log-hide-timestamp", "--network-interface", "eth0,eth1", "--mpi-threads-disable"),
        *("--min-np", "1", "--gloo-timeout-seconds", "60", "python", "train.py", "--lr", "1"),
    )
    assert settings.num_proc == 2 and settings.min_num_proc == 1 and settings.hosts == "a:1,b:1"
    assert settings.nics == {"eth0", "eth1"} and settings.run_func is None
    assert settings.command == ["python", "train.py", "--lr", "1"]
    assert variables == {
        "HOROVOD_FUSION_THRESHOLD": str(10 << 20),
        "HOROVOD_CYCLE_TIME": "20.0",
        "HOROVOD_CACHE_CAPACITY": "512",
        "HOROVOD_HIERARCHICAL_ALLREDUCE": "1",
        "HOROVOD_HIERARCHICAL_ALLGATHER": "0",
        "HOROVOD_STALL_CHECK_TIME_SECONDS": "10",
        "HOROVOD_LOG_LEVEL": "INFO",
        "HOROVOD_LOG_HIDE_TIME": "1",
        "HOROVOD_MPI_THREADS_DISABLE": "1",
        "HOROVOD_GLOO_TIMEOUT_SECONDS": "60",
    }


def test_settings_of_a_feature_count_with_the_feature_only(parsed):
    assert parsed("--autotune-warmup-samples", "1", "--timeline-mark-cycles")[1] == {}
    variables = parsed("--autotune", "--autotune-warmup-samples", "1", "--no-stall-check")[1]
    assert variables == {
        "HOROVOD_AUTOTUNE": "1",
        "HOROVOD_AUTOTUNE_WARMUP_SAMPLES": "1",
        "HOROVOD_STALL_CHECK_DISABLE": "1",
    }
    variables = parsed("--timeline-filename", "t.json", "--timeline-mark-cycles")[1]
    assert variables == {"HOROVOD_TIMELINE": "t.json", "HOROVOD_TIMELINE_MARK_CYCLES": "1"}


def test_variables_that_are_there_stay_where_nothing_is_set(parsed):
    there = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "1800"}
    assert config_parser.set_env_from_args(dict(there), parsed()[0]) == there


def test_a_file_sets_what_no_flag_sets(parsed, tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "config.yaml"
    path.write_text(
        "controller: gloo\n"
        "params: {fusion_threshold_mb: 32, cycle_time_ms: 10, hierarchical_allreduce: true}\n"
        "autotune: {enabled: true, log_file: log.txt}\n"
        "stall_check: {enabled: true, warning_time_seconds: 120}\n"
        "logging: {level: INFO, with_timestamp: false}\n"
    )
    settings, variables = parsed("--fusion-threshold-mb", "256", "--config-file", str(path))
    assert settings.use_gloo and settings.fusion_threshold_mb == 256
    assert settings.cycle_time_ms == 10 and settings.hierarchical_allreduce
    assert settings.autotune and settings.autotune_log_file == "log.txt"
    assert settings.no_stall_check is False and settings.stall_check_warning_time_seconds == 120
    assert variables["HOROVOD_LOG_HIDE_TIME"] == "1"
    path.write_text("params: {fusion_threshold_mb: 1.5}\n")
    assert parsed("--config-file", str(path))[1]["HOROVOD_FUSION_THRESHOLD"] == str(3 << 19)
    path.write_text("controller: pigeons\n")
    with pytest.raises(ValueError, match="No such controller supported: pigeons"):
        parsed("--config-file", str(path))


def test_settings_out_of_range_are_refused(parsed):
    with pytest.raises(ValueError, match="fusion_threshold_mb=-1 must be >= 0"):
        parsed("--fusion-threshold-mb", "-1")
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        parsed("--autotune", "--autotune-gaussian-process-noise", "1.5")


@needs_launcher
def test_parsed_settings_run(parsed, tmp_path):
    code = "import os, pathlib; pathlib.Path(os.environ.get('HOROVOD_ELASTIC', 'static')).touch()"
    program = ["sh", "-c", 'cd "$0" && "$1" -c "$2"', str(tmp_path), sys.executable, code]
    assert _run(parsed(*program)[0]) is None
    assert [path.name for path in tmp_path.iterdir()] == ["static"]
    _run_elastic(parsed(*program)[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "static"]


def test_variables_are_set_within_a_context(monkeypatch):
    monkeypatch.setenv("HVD_TEST_A", "before")
    monkeypatch.delenv("HVD_TEST_B", raising=False)
    with pytest.raises(KeyError), env(HVD_TEST_A="within", HVD_TEST_B="new", HVD_TEST_C=None):
        assert os.environ["HVD_TEST_A"] == "within" and os.environ["HVD_TEST_B"] == "new"
        assert "HVD_TEST_C" not in os.environ
        raise KeyError
    assert os.environ["HVD_TEST_A"] == "before" and "HVD_TEST_B" not in os.environ


def test_lists_are_split_evenly():
    assert split_list([1, 2, 3, 4, 5], 3) == [[1, 2], [3, 4], [5]]
    assert split_list([1], 3) == [[1], [], []]


def test_threads_call_what_they_are_given():
    called = []
    for arguments in ((1,), (1, 2)):
        in_thread(lambda *given: called.append(given), arguments).join(60)
    in_thread(lambda: 1 / 0, silent=True).join(60)
    assert called == [(1,), (1, 2)]
    with pytest.raises(ValueError, match=r"^args must be a tuple, not int: write \(x,\)"):
        in_thread(called.append, args=1)
    assert execute_function_multithreaded(lambda a, b: a + b, [[1, 2], [3, 4]]) == {0: 3, 1: 7}

    def leave():
        raise SystemExit

    for function in (leave, functools.partial(leave)):  # which has no __name__
        with pytest.raises(RuntimeError, match=r"leave.* did not complete successfully"):
            execute_function_multithreaded(function, [[]], max_concurrent_executions=1)


def test_threads_wait_for_an_event_unless_they_are_stopped():
    event, stop, called = threading.Event(), threading.Event(), []
    waiting = on_event(event, called.append, ("x",))
    assert called == []
    event.set()
    waiting.join(60)
    assert called == ["x"]
    never = threading.Event()
    waiting = on_event(never, called.append, ("y",), stop=stop, check_stop_interval_s=0.01)
    stop.set()
    waiting.join(60)
    assert not waiting.is_alive() and called == ["x"]
    for bad, text in (
        (dict(event=None), "^Event must not be None$"),
        (dict(event=event, daemon=False), "needs a stop event"),
        (dict(event=event, args=1), "^args must be a tuple"),
    ):
        with pytest.raises(ValueError, match=text):
            on_event(func=print, **bad)


@pytest.mark.parametrize(
    "command, code, out, err",
    [
        ("echo hello", 0, "hello\n", ""),
        ("echo hello >&2; exit 3", 3, "", "hello\n"),
        ("printf 'a\\rb\\nc'; kill -9 $$", 137, "a\rb\nc", ""),
    ],
)
def test_commands_of_a_shell(command, code, out, err):
    stdout, stderr = io.StringIO(), io.StringIO()
    assert safe_shell_exec.execute(command, stdout=stdout, stderr=stderr) == code
    assert (stdout.getvalue(), stderr.getvalue()) == (out, err)


def test_lines_of_a_command_have_a_prefix():
    stdout = io.StringIO()
    safe_shell_exec.execute("printf 'a\\rb\\n\\303\\244'", stdout=stdout, index=7)
    assert stdout.getvalue() == "[7]<stdout>:a\r[7]<stdout>:b\n[7]<stdout>:\u00e4"


def test_a_command_ends_at_an_event():
    stop = threading.Event()

    class Started(io.StringIO):
        def write(self, text):
            stop.set()

    command = "echo up; exec sleep 1000"
    assert safe_shell_exec.execute(command, stdout=Started(), events=[stop]) == 143


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SystemExit(1)])
def test_a_command_continues_although_a_stream_fails(error):
    class Failing(io.StringIO):
        def write(self, text):
            raise error

    command, stderr = "yes | head -c 300000; echo end >&2", io.StringIO()
    result = ended(lambda: safe_shell_exec.execute(command, stdout=Failing(), stderr=stderr))
    assert (result, stderr.getvalue()) == ([0], "end\n")


def test_a_command_continues_without_streams(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    result = ended(lambda: safe_shell_exec.execute("yes | head -c 300000", stderr=io.StringIO()))
    assert result == [0]


def ended(call):
    """Returns a list of the result of a call, or an empty one if the call has not ended within a minute."""
    result = []
    thread = threading.Thread(target=lambda: result.append(call()), daemon=True)
    thread.start()
    thread.join(60)
    return result


def test_a_command_does_not_outlive_its_caller(tmp_path):
    code = (
        "from horovod.runner.common.util import safe_shell_exec as s;"
        "s.execute('exec 3<>{0}; echo up >{1}; exec sleep 1000')"
    )
    os.mkfifo(tmp_path / "held")
    os.mkfifo(tmp_path / "up")
    names = (tmp_path / "held", tmp_path / "up")
    caller = subprocess.Popen([sys.executable, "-c", code.format(*names)])
    with open(tmp_path / "up") as up:
        assert up.read() == "up\n"
    with open(os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)) as held:
        os.set_blocking(held.fileno(), True)
        caller.send_signal(signal.SIGKILL)
        assert held.read() == ""  # its last writer is gone
    caller.wait()
