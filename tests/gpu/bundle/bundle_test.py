"""The GPU check's runner, without a GPU: limits, what is ended with a part, and what is reported."""

import argparse
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

import parts
import report
from processes import pids_with

HERE = Path(__file__).resolve().parent


def load_runner():
    loader = importlib.machinery.SourceFileLoader("gpu_check_runner", str(HERE / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module  # dataclasses look it up
    loader.exec_module(module)
    return module


runner = load_runner()


def test_limit_of_a_part_is_its_own_or_what_is_left():
    part = parts.Part("any", 100)
    assert parts.limit_of(part, 480) == 100
    assert parts.limit_of(part, 480, 2.0) == 200
    assert parts.limit_of(part, 40) == 40
    assert parts.limit_of(part, parts.LEAST_SECONDS - 1) == 0


def test_parts_come_in_order_of_value_whatever_the_order_of_names():
    names = [part.name for part in parts.PARTS]
    assert [part.name for part in parts.chosen([])] == names
    assert [part.name for part in parts.chosen([names[3], names[0]])] == [names[0], names[3]]
    with pytest.raises(ValueError, match="no part is called 'none'; there are: operations, "):
        parts.chosen(["none"])


def test_every_part_has_its_tests():
    assert sorted(path.name for path in (HERE.parent / "parts").glob("*_test.py")) == sorted(
        f"{part.name}_test.py" for part in parts.PARTS
    )


ORPHANS = """
import os, subprocess, sys
subprocess.Popen(["sleep", "600"], start_new_session=True)  # outlives its parent, and has its own session
print("started", flush=True)
{then}
"""


@pytest.mark.parametrize("then, timed_out", [("sys.exit(3)", False), ("import time; time.sleep(600)", True)])
def test_nothing_is_left_of_a_part(tmp_path, then, timed_out):
    """In a process of its own, as the runner becomes the parent of all orphans."""
    script = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import bounded, os; bounded.adopt_orphans(); "
        f"command = [sys.executable, '-c', {ORPHANS.format(then=then)!r}]; "
        f"print(bounded.run(command, {2 if timed_out else 60}, os.environ, open({str(tmp_path / 'log')!r}, 'wb')))"
    )
    mark = f"GPU_BUNDLE_TEST={tmp_path}"
    environment = {**os.environ, "GPU_BUNDLE_TEST": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert f"timed_out={timed_out}" in done.stdout, done.stderr
    assert timed_out or "code=3" in done.stdout
    assert (tmp_path / "log").read_text().startswith("started\n")
    assert pids_with(mark.encode() + b"\0") == []


RECORD = """\
{"event": "begin", "test": "a"}
{"event": "figure", "name": "speed", "value": 3, "unit": "GB/s", "aim": "4"}
{"event": "test", "test": "a", "outcome": "passed", "seconds": 1.5, "message": ""}
{"event": "begin", "test": "b"}
{"event": "test", "test": "b", "outcome": "failed", "seconds": 0.5, "message": "Error:\\nwrong \\u001b[1msum\\n"}
{"event": "begin", "test": "c"}
{"event": "test", "test": "c", "outcome": "skipped", "seconds": 0.0, "message": "no card"}
{"event": "begin", "test": "d"}
{"event": "test", "te"""


@pytest.fixture
def result(tmp_path):
    """The result of a part that was killed in test d, while it wrote."""
    path = tmp_path / "record"
    path.write_text(RECORD)
    made = report.PartResult("operations", seconds=9.0, problem="ended after 9 s")
    report.read_record(made, path)
    return made


def test_test_that_did_not_end_has_failed(result):
    assert [(test["test"], test["outcome"]) for test in result.tests] == [
        ("a", "passed"),
        ("b", "failed"),
        ("c", "skipped"),
        ("d", "failed"),
    ]
    assert not result.is_good
    assert result.figures == [{"name": "speed", "value": 3, "unit": "GB/s", "aim": "4"}]


def test_junit_has_all_tests_and_the_parts_that_went_wrong(result):
    suite = tree.fromstring(report.as_junit([result, report.PartResult("jax", was_run=False)])).find("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "2",
        "errors": "2",
        "skipped": "1",
    }
    assert suite.findall("testcase/error")[1].get("message") == "not run"


def test_table_fits_a_screen_and_names_what_failed(result):
    table = report.as_table({"card": "none", "driver": ""}, [result])
    assert "card none\n" in table and "driver" not in table
    assert "operations   FAILED         1      2       1     9.0  ended after 9 s" in table
    assert "speed" in table and "(aim: 4)" in table
    assert "operations: d: it did not end in time" in table
    many = report.PartResult(
        "jax", tests=[{"test": str(i), "outcome": "failed", "seconds": 0, "message": "x"} for i in range(90)]
    )
    assert len(report.as_table({}, [many]).splitlines()) < 20


def test_json_has_everything(result):
    read = json.loads(report.as_json({"card": "none"}, [result]))
    assert read["machine"] == {"card": "none"}
    assert read["parts"][0]["passed"] is False and len(read["parts"][0]["tests"]) == 4


PARTS = {
    "first": "import os\n\ndef test_fine():\n    assert os.environ['GPU_CHECK_SLOWER'] == '1.0'\n",
    "second": "import threading\n\ndef test_hangs():\n    threading.Event().wait()\n",
    "third": "def test_fine():\n    pass\n",
}


@pytest.fixture
def check(tmp_path, monkeypatch):
    """A check with small parts, which record as the real ones do."""
    bundle = tmp_path / "bundle"
    for name, text in PARTS.items():
        path = bundle / "tests/gpu/parts" / f"{name}_test.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    conftest = (HERE.parent / "parts/conftest.py").read_text()
    hooks = conftest[conftest.index("RECORD =") : conftest.index("@pytest.fixture")]
    (bundle / "tests/gpu/parts/conftest.py").write_text("import json\nimport os\n\n" + hooks)
    monkeypatch.setattr(runner, "HERE", bundle)
    monkeypatch.setattr(parts, "LEAST_SECONDS", 1)
    out = tmp_path / "out"
    out.mkdir()
    limits = {"first": 60, "second": 12, "third": 60}
    args = argparse.Namespace(out=out, seconds=200, slower=1.0, parts=[parts.Part(*each) for each in limits.items()])
    return runner.Check(args, sys.executable, dict(os.environ), tmp_path, {"card": "none"})


def test_part_that_hangs_is_ended_and_named_and_the_next_one_runs(check):
    check.run()
    first, second, third = check.results
    assert first.is_good and third.is_good
    assert second.problem == "ended after 12 s"
    assert [(test["test"], test["outcome"]) for test in second.tests] == [("test_hangs", "failed")]


def test_results_so_far_are_there_when_the_time_is_over(check):
    check.args.seconds = 8
    check.args.parts[1] = parts.Part("second", 60)
    check.run()
    assert [each.was_run for each in check.results] == [True, True, False]
    read = json.loads((check.args.out / "gpu.json").read_text())
    assert [part["passed"] for part in read["parts"]] == [True, False, False]
    assert "third        not run" in (check.args.out / "table.txt").read_text()


def run_bundle(*arguments, **environment):
    command = [sys.executable, str(HERE / "run"), *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


def test_folder_without_a_wheel_is_refused(tmp_path):
    done = run_bundle("--out", str(tmp_path / "out"))
    assert done.returncode == 2 and "make the bundle with tools/gpu_bundle" in done.stderr, done.stderr


def test_interpreter_that_is_not_there_is_refused(tmp_path):
    done = run_bundle("--out", str(tmp_path / "out"), "--python", "no-such-python")
    assert done.returncode == 2 and done.stderr == "run: --python: there is no program no-such-python\n"
