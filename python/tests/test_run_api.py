"""horovod.run: functions on several ranks, from Python. Needs horovodrun; runs in one process."""

import contextlib
import inspect
import io
import os
import sys
import tempfile

import pytest

import horovod
from horovod.runner import _as_arguments, _HorovodArgs
from horovod.runner._arguments import flags_of
from launcher_there import needs_launcher


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    """Nothing may be left behind in it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert os.listdir(str(tmp_path)) == []


@needs_launcher
def test_results_are_in_rank_order():
    offset = 100

    def function(factor, plus=0):
        import torch

        import horovod.torch as hvd

        hvd.init()
        total = hvd.allreduce(torch.tensor([hvd.rank()]), op=hvd.Sum).item()
        return hvd.rank() * factor + plus + offset, total

    assert horovod.run(function, (10,), {"plus": 1}, num_proc=2) == [(101, 1), (111, 1)]


@needs_launcher
def test_function_may_shut_down():
    def function():
        import horovod.torch as hvd

        hvd.init()
        rank = hvd.rank()
        hvd.shutdown()
        return rank

    assert horovod.run(function, num_proc=2, hosts="localhost:2") == [0, 1]


@needs_launcher
def test_exception_reaches_the_caller():
    def function():
        import torch

        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("the cause")
        hvd.allreduce(torch.ones(1))

    with pytest.raises(RuntimeError) as caught:
        horovod.run(function, num_proc=2)
    text = str(caught.value)
    assert text.startswith("The Horovod job failed: horovodrun ended with status 1.")
    assert "Rank 1 raised" in text and "KeyError: 'the cause'" in text


@needs_launcher
def test_result_that_can_not_be_pickled_reaches_the_caller():
    with pytest.raises(RuntimeError) as caught:
        horovod.run(lambda: (i for i in range(2)), num_proc=1)
    assert "the function's result, a generator, can't be pickled" in str(caught.value)


@needs_launcher
def test_nothing_is_printed_beside_what_the_function_prints(capfd):
    horovod.run(print, ("words",), num_proc=1)
    assert capfd.readouterr() == ("[0]<stdout>:words\n", "")


@needs_launcher
def test_output_goes_where_sys_stdout_and_stderr_go():
    def function():
        print("said")
        print("complained", file=sys.stderr)

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        print("before")
        horovod.run(function, num_proc=1)
        print("after")
    assert out.getvalue() == "before\n[0]<stdout>:said\nafter\n"
    assert err.getvalue() == "[0]<stderr>:complained\n"


@needs_launcher
def test_output_is_whole_though_a_stream_takes_no_bytes(tmp_path):
    lines = ["\u00e4\u20ac\U0001f40e" * 999] * 30  # more than a pipe holds, cut anywhere
    with open(tmp_path / "out", "w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        horovod.run(print, lines, {"sep": "\n"}, num_proc=1)
    found = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert found == ["[0]<stdout>:" + line for line in lines]
    os.unlink(tmp_path / "out")


@needs_launcher
def test_a_stream_that_fails_ends_the_job(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError("no space left")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="no space left"):
        horovod.run(print, ("words",), num_proc=1)


def test_signature_and_documentation_are_those_of_the_function():
    parameters = list(inspect.signature(horovod.run).parameters)
    assert parameters[:4] == ["func", "args", "kwargs", "num_proc"]
    assert "hvd.init()" in horovod.run.__doc__ and "run" in dir(horovod)


def test_contradictions_fail():
    for kwargs in (
        dict(hosts="a:1", hostfile="b"),
        dict(use_mpi=True, use_gloo=True),
        dict(use_mpi=True),
        dict(num_proc=2, np=2),
    ):
        with pytest.raises(ValueError):
            horovod.run(print, **kwargs)


@needs_launcher
def test_what_horovodrun_refuses_is_a_value_error():
    for kwargs, reason in (
        (dict(num_proc=0), "-np=0 must be >= 1"),
        (dict(num_proc=4, hosts="localhost:2"), "4 processes need 4 slots, but the hosts have 2"),
        (dict(hosts="localhost:x"), "host localhost: 'x' is not a number of slots"),
    ):
        with pytest.raises(ValueError, match=f"^horovodrun refused the arguments of horovod.run: .*{reason}"):
            horovod.run(print, **kwargs)


@needs_launcher
def test_the_error_of_horovodrun_is_in_the_exception_where_it_is_passed_on(capsys):
    with pytest.raises(RuntimeError, match=r"^The Horovod job failed: no-such-host\.invalid: "):
        horovod.run(print, hosts="no-such-host.invalid:2", num_proc=2)
    assert "horovodrun: error: no-such-host.invalid: " in capsys.readouterr().err


@needs_launcher
def test_exit_code_of_a_worker_is_not_a_refusal():
    def function():
        os._exit(2)

    with pytest.raises(RuntimeError, match=r"horovodrun ended with status 2\. Its last lines on stderr say why"):
        horovod.run(function)


def test_switches_take_whatever_is_true():
    settings = _HorovodArgs()
    settings.verbose, settings.disable_cache, settings.use_gloo = 2, 1, 1
    settings.hierarchical_allreduce, settings.torus_allreduce, settings.reset_limit = 0, 0, 0
    flags = ["--reset-limit", "0", "--verbose", "--disable-cache", "--gloo", "--no-hierarchical-allreduce"]
    assert flags_of(settings) == ["-np", "1", *flags]


@pytest.mark.parametrize(
    "given, flags",
    [
        ([], []),
        (set(), []),
        ("", []),
        ("lo,eth0", ["--network-interfaces", "lo,eth0"]),
        (["lo", "eth0"], ["--network-interfaces", "eth0,lo"]),
        ({"lo", "eth0"}, ["--network-interfaces", "eth0,lo"]),
    ],
)
def test_network_interfaces_are_names_or_none(given, flags):
    settings = _HorovodArgs()
    settings.nics = given
    assert flags_of(settings) == ["-np", "1", *flags]


@needs_launcher
def test_numbers_and_lists_are_taken_as_horovod_takes_them(capfd):
    given = dict(verbose=2, disable_cache=1, use_gloo=1, network_interfaces=[])
    assert horovod.run(int, ("7",), num_proc=1, **given) == [7]


@needs_launcher
@pytest.mark.parametrize(
    "settings, count",
    [
        (dict(num_proc="2"), 2),
        (dict(num_proc="auto", hosts="localhost:2"), 2),
        (dict(num_proc="2", min_num_proc="1", hosts="localhost:2"), 1),
        (dict(num_proc=2, hosts=["localhost:1", "127.0.0.1:1"]), 2),
    ],
)
def test_numbers_and_hosts_in_other_forms(settings, count):
    assert horovod.run(int, ("7",), **settings) == [7] * count


@pytest.mark.parametrize(
    "settings, reason",
    [
        (dict(cooldown_range=5, min_num_proc=1), r"cooldown_range: 5 is not a pair of seconds, as \(5, 60\)"),
        (dict(cooldown_range=(5,), min_num_proc=1), r"cooldown_range: \(5,\) is not a pair"),
        (dict(hostfile=["a", "b"]), r"hostfile: \['a', 'b'\] is a list: give one value"),
        (dict(ssh_port=(22, 23)), r"ssh_port: \(22, 23\) is a tuple: give one value"),
    ],
)
def test_what_would_be_other_words_for_horovodrun_is_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        horovod.run(print, **settings)


def test_flags():
    flags = {"-np": 2, "-H": None, "--blacklist-cooldown-range": (1, 2)}
    assert _as_arguments(flags) == ["-np", "2", "--blacklist-cooldown-range", "1", "2"]
