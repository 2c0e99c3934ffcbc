"""Tracebacks without the frames of this package. Runs in one process."""

import subprocess
import sys
import traceback

import pytest

from horovod.common import _tracebacks, exceptions, util
from horovod.common.exceptions import HorovodInternalError
from horovod.runner.common.util.hosts import parse_hosts


def users_function():
    return parse_hosts("nonsense")  # two frames of the package


def error_of(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_only_the_users_frames_are_shown(monkeypatch):
    monkeypatch.delenv("HOROVOD_LOG_LEVEL", raising=False)
    text = _tracebacks.folded(error_of(users_function))
    assert 'in users_function\n    return parse_hosts("nonsense")' in text
    assert "hosts.py" not in text and "from_string" not in text
    note, *_, last = text.splitlines()
    assert note.endswith("frames of Horovod left out; HOROVOD_LOG_LEVEL=debug shows them)")
    assert last.startswith("ValueError: 'nonsense' is no host with slots")


def test_frames_of_others_between_those_of_the_package_are_folded(monkeypatch):
    monkeypatch.delenv("HOROVOD_LOG_LEVEL", raising=False)

    def frame(path):
        return traceback.FrameSummary(path, 1, path)

    torch, package = frame(_tracebacks._INSTALLED[0] + "torch.py"), frame(_tracebacks._PACKAGE + "torch/a.py")
    script = frame("/script.py")
    for given, kept in (
        ([script, package, torch, torch, package], [script]),
        ([script, torch, package, torch, package], [script, torch]),
        ([script, package, torch], [script, torch]),
        ([script, package, torch, script, package], [script, torch, script]),
    ):
        assert _tracebacks._users(given) == kept


@pytest.mark.parametrize("hook", ["", "sys.excepthook = lambda kind, value, traceback: print('its own')"])
def test_a_script_that_never_calls_init_has_its_frames_only(hook):
    script = f"import sys\n{hook}\nfrom horovod.common import basics\nbasics.rank()"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    if hook:
        assert (found.stdout, found.stderr) == ("its own\n", "")
    else:
        assert "call hvd.init() first" in found.stderr and "_process.py" not in found.stderr


@pytest.mark.parametrize("line", ["valeu", "basics.rnk", "object.__new__(TensorState).comit"])
def test_python_still_asks_whether_another_name_was_meant(line):
    script = (
        f"from horovod.common import basics\nfrom horovod.elastic.tensor_state import TensorState\nvalue = 1\n{line}"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 1 and ("Did you mean" in found.stderr) == (sys.version_info >= (3, 10)), found.stderr


def test_a_suppressed_context_is_not_counted(monkeypatch):
    monkeypatch.delenv("HOROVOD_LOG_LEVEL", raising=False)

    def hide():
        try:
            users_function()
        except ValueError:
            raise RuntimeError("while training") from None

    assert "left out" not in _tracebacks.folded(error_of(hide))


def test_causes_are_folded_as_well(monkeypatch):
    monkeypatch.delenv("HOROVOD_LOG_LEVEL", raising=False)

    def wrap():
        try:
            users_function()
        except ValueError as error:
            raise RuntimeError("while training") from error

    text = _tracebacks.folded(error_of(wrap))
    assert "The above exception was the direct cause" in text and "while training" in text
    assert text.count("users_function") >= 2 and "hosts.py" not in text


def test_all_is_shown_if_asked_for(monkeypatch):
    monkeypatch.setenv("HOROVOD_LOG_LEVEL", "DEBUG")
    assert "hosts.py" in _tracebacks.folded(error_of(users_function))
    assert "hosts.py" in _tracebacks.in_a_line(error_of(users_function))


def test_nothing_is_said_of_frames_if_there_are_none(monkeypatch):
    monkeypatch.delenv("HOROVOD_LOG_LEVEL", raising=False)

    def own():
        raise KeyError("mine")

    assert "left out" not in _tracebacks.folded(error_of(own))


def test_a_line_names_the_users_innermost_line(monkeypatch):
    monkeypatch.delenv("HOROVOD_LOG_LEVEL", raising=False)
    text = _tracebacks.in_a_line(error_of(users_function))
    assert text.startswith("ValueError: 'nonsense' is no host with slots") and "\n" not in text
    assert text.endswith("in users_function)") and "test_tracebacks.py:" in text


def test_the_line_of_an_error_that_another_rank_has_caused_is_where_this_rank_was(monkeypatch):
    monkeypatch.delenv("HOROVOD_LOG_LEVEL", raising=False)

    def fail(code):
        raise HorovodInternalError("rank 1 failed: ValueError: bad batch", code=code)

    text = _tracebacks.in_a_line(error_of(lambda: fail(exceptions.ABORTED)))
    assert "ValueError: bad batch (this rank was at " in text and text.endswith("in fail)")
    assert "this rank was at" not in _tracebacks.in_a_line(error_of(lambda: fail(None)))


def test_an_error_of_the_package_alone_has_its_line():
    with util.env(HOROVOD_LOG_LEVEL="info"):
        error = ValueError("with\nlines")
        assert _tracebacks.in_a_line(error) == "ValueError: with lines"
        with pytest.raises(ValueError):
            parse_hosts("x")
