"""The Python of the caller of a function, as its workers take it over: version and folders of modules. Runs in one process."""

import io
import json
import os
import subprocess
import sys

import pytest

import horovod
from horovod.runner import _engine_task, _handover, _python
from horovod.runner._python import CallersPython, with_folders, with_package
from horovod.runner.common.util import safe_shell_exec
from launcher_there import needs_launcher

SCRIPT = """
import json, os, sys
if len(sys.argv) > 1:
    sys.path.insert(2, sys.argv[1])
import horovod

def seen():
    import users
    return list(sys.path), os.environ.get("PYTHONPATH"), users.VALUE

if __name__ == "__main__":
    worker, = horovod.run(seen, num_proc=1)
    print(json.dumps([worker, seen()]))
"""
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(horovod.__file__)))


@needs_launcher
@pytest.mark.parametrize("place", ["PYTHONPATH", "the script"])
def test_a_worker_searches_modules_where_its_caller_does_in_the_same_order(tmp_path, place):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "users.py").write_text("VALUE = 'the one before'")
    (tmp_path / "users.py").write_text("VALUE = 'beside the script'")
    given = [str(tmp_path / "a"), *([PACKAGE] if place == "PYTHONPATH" else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(given)}
    command = [sys.executable, str(tmp_path / "script.py"), *([PACKAGE] if place != "PYTHONPATH" else [])]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, cwd=os.sep)
    worker, caller = json.loads(done.stdout)
    assert worker == caller and worker[2] == "beside the script"


@pytest.fixture
def shared(tmp_path):
    """A folder with modules of another user."""
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in ("horovod", "json", "os", "runpy", "select", "socket", "ssl", "cloudpickle", "subprocess"):
        (folder / f"{name}.py").write_text("import posix; posix.mkdir('imported'); posix._exit(0)")
    return folder


@needs_launcher
def test_a_worker_imports_nothing_of_the_working_directory(tmp_path, shared):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "users.py").write_text("VALUE = 'beside the script'")
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], env=environment, stdout=subprocess.PIPE, cwd=shared
    )
    assert not (shared / "imported").exists()
    worker, caller = json.loads(done.stdout)
    assert worker == caller and worker[2] == "beside the script"


def test_a_worker_of_an_engine_imports_nothing_of_the_working_directory(monkeypatch, shared):
    started = []

    class Agent:
        def __init__(self, info, command, name, environment, output, flags):
            started.append((command, environment))

        def wait(self):
            return 0

    monkeypatch.setattr(_engine_task, "JoinedAgent", Agent)
    monkeypatch.setattr(_engine_task.Task, "begin", lambda *_: False)
    monkeypatch.setattr(_engine_task.Task, "_is_wanted_again", lambda *_: False)
    monkeypatch.setattr(_engine_task, "output_to_caller", lambda *_: None)
    _engine_task.Task(None, {}, None, (), False).run("task0", None, {})
    ((command, environment),) = started
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=shared)
    assert b"stdin does not say where the caller is" in done.stderr
    assert not (shared / "imported").exists()


def test_a_shell_command_imports_nothing_of_the_working_directory(monkeypatch, shared):
    monkeypatch.chdir(shared)
    stdout = io.StringIO()
    assert safe_shell_exec.execute("echo hello", stdout=stdout) == 0
    assert stdout.getvalue() == "hello\n"
    assert not (shared / "imported").exists()


def test_this_package_is_added_to_the_path_only_where_it_would_not_be_found(monkeypatch):
    assert with_package({"PYTHONPATH": f"/a:{PACKAGE}"}) == {"PYTHONPATH": f"/a:{PACKAGE}"}
    added = {"HOROVOD_PACKAGE_PATH": PACKAGE}
    assert with_package({"PYTHONPATH": "/a"}) == {"PYTHONPATH": f"/a:{PACKAGE}", **added}
    assert with_package({}) == {"PYTHONPATH": PACKAGE, **added}
    monkeypatch.setattr("site.getsitepackages", lambda: ["/nowhere", PACKAGE])
    assert with_package({"A": "b"}) == {"A": "b"}
    assert with_package({}, "/another/python") == {"PYTHONPATH": PACKAGE, **added}


@pytest.fixture
def own_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("PYTHONPATH", "HOROVOD_PACKAGE_PATH", "HOROVOD_TASK_PATHS", "HOROVOD_LAST_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("before", ["", "/a:/b"])
def test_what_was_done_for_the_start_is_undone(monkeypatch, own_path, before):
    sys.path[:] = [os.getcwd(), "/a"]  # as PYTHONPATH may have it
    for name, value in with_package({"PYTHONPATH": before}).items():
        monkeypatch.setenv(name, value)
    assert _python.paths_of_start() == [] and sys.path == [os.getcwd(), "/a"]
    assert (os.environ.get("PYTHONPATH", ""), "HOROVOD_PACKAGE_PATH" in os.environ) == (before, False)


def test_folders_of_an_engines_task_follow_that_of_the_script(monkeypatch, own_path):
    sys.path[:] = ["/lib"]
    for name, value in with_folders({"PYTHONPATH": "/b"}, ["/sent/a.zip", "/sent"]).items():
        monkeypatch.setenv(name, value)
    assert os.environ["PYTHONPATH"] == "/sent/a.zip:/sent:/b"
    sys.path[:] = ["/sent/a.zip", "/sent", "/b", "/lib", "/spark.zip"]
    caller = CallersPython.here()._replace(paths=["/script", "/b", "/lib"])
    assert caller.folders_only_here() == ["/sent/a.zip", "/sent", "/spark.zip"]
    caller.take_paths(_python.paths_of_start())
    assert sys.path == ["/script", "/sent/a.zip", "/sent", "/b", "/lib", "/spark.zip"]


@pytest.mark.parametrize("entry", ["", os.curdir, None, "/elsewhere"])
def test_an_engines_working_directory_is_searched_last_where_its_task_searches_it(monkeypatch, own_path, entry):
    """Spark's are started by python -m, and --files puts modules there."""
    monkeypatch.delenv("HOROVOD_LAST_PATH", raising=False)
    entry = os.getcwd() if entry is None else entry
    sys.path[:] = [entry, "/a"]
    for name, value in with_folders({}, []).items():
        monkeypatch.setenv(name, value)
    sys.path[:] = ["/a"]
    assert _python.paths_of_start() == [] and "HOROVOD_LAST_PATH" not in os.environ
    assert sys.path == (["/a"] if entry == "/elsewhere" else ["/a", os.getcwd()])


def test_the_folders_of_another_interpreter_are_replaced_by_ones_own(own_path):
    own = [path for path in sys.path if _python._is_standard(path)]
    assert own
    sys.path[:] = ["/only/here", *own]
    paths = ["/script", "/b", "/lib/python3.11", "/venv/site-packages", "/added/by/the/script"]
    caller = CallersPython.here()._replace(prefix="/venv", paths=paths, standard=paths[2:4])
    caller.take_paths()
    assert sys.path == ["/script", "/b", *own, "/added/by/the/script", *paths[2:4], "/only/here"]


def test_folders_of_the_interpreter():
    import pytest as a_package

    for module in (json, a_package):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(module.__file__)))
        assert folder in CallersPython.here().standard
    assert os.path.dirname(os.path.abspath(__file__)) not in CallersPython.here().standard


@pytest.mark.parametrize("other", [dict(version="3.99"), dict(implementation="pypy")])
def test_a_function_of_another_version_of_python_is_not_unpickled(monkeypatch, other):
    here = CallersPython.here()
    changed = here._replace(executable="/the/callers", **other)
    monkeypatch.setattr(CallersPython, "here", classmethod(lambda cls: changed))
    data = _handover.Handover(lambda: pytest.fail("it was unpickled"))._function
    monkeypatch.setattr(CallersPython, "here", classmethod(lambda cls: here))
    monkeypatch.setattr("cloudpickle.loads", lambda _: pytest.fail("it was unpickled"))
    with pytest.raises(RuntimeError) as caught:
        _handover.loaded(data)
    (line,) = str(caught.value).splitlines()
    assert (
        f"the caller runs {changed.implementation} {changed.version} (/the/callers), this worker {here.implementation}"
        in line
    )
    assert here.executable in line and here.version in line


@needs_launcher
def test_a_worker_of_another_version_of_python_is_said_in_a_line(monkeypatch):
    here = CallersPython.here()
    monkeypatch.setattr(CallersPython, "here", classmethod(lambda cls: here._replace(version="3.99")))
    with pytest.raises(
        RuntimeError, match=r"RuntimeError: the caller runs cpython 3\.99 .* use one version on all machines"
    ):
        horovod.run(lambda: 5, num_proc=1)
