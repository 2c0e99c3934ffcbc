"""What the gate counts as passed, and its table. Bazel and pytest are scripts here."""

import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path

import table
from gate import Gate
from suite import Suite, bazel, report_of

_TREE = Path(__file__).resolve().parent.parent.parent

# A suite of 3 tests, of which one fails in the first N runs.
_FAILS = """#!/usr/bin/env bash
echo run >>"$2.runs"
bad=$(($(wc -l <"$2.runs") <= $1))
echo "<testsuites><testsuite tests='3' failures='$bad' errors='0' skipped='0'/></testsuites>" >"$2"
((bad == 0)) || echo "FAILED tests/a_test.py::test_a[b c] - AssertionError: x - y"
exit "$bad"
"""
_BAZEL = """#!/usr/bin/env bash
echo "//a:a_test   PASSED in 0.1s"
echo "//a:b_test   FLAKY, failed in 1 out of 2 in 0.1s"
"""


class Counts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tests").mkdir()
        (self.root / "bin").mkdir()
        for name, text in (("fails", _FAILS), ("bazel", _BAZEL)):
            (self.root / "bin" / name).write_text(text)
            (self.root / "bin" / name).chmod(0o755)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{self.root / 'bin'}:{path}"
        self.flaky("# nothing")

    def flaky(self, *lines):
        (self.root / "tests" / "flaky.txt").write_text("\n".join(lines))

    def result_of(self, *suites):
        """The last line, the exit code, and all that was said."""
        said, shown = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
            gate = Gate(self.root)
            gate.run(suites)
            code = gate.finish()
        return shown.getvalue().splitlines()[-1], code, said.getvalue()

    def fails(self, runs):
        return self.result_of(Suite("some tests", ("fails", str(runs), "{report}"), report="junit"))

    def test_suite_that_passes(self):
        self.assertEqual(("3 passed, 0 failed", 0), self.fails(0)[:2])

    def test_that_passes_when_repeated_has_failed(self):
        line, code, said = self.fails(1)
        self.assertEqual(("2 passed, 1 failed", 1), (line, code))
        self.assertIn("passes when repeated alone: tests/a_test.py::test_a[b c]", said)
        self.assertIn("failed: some tests", said)

    def test_that_is_listed_needs_a_reason(self):
        self.flaky("tests/a_test.py::test_a[b c]: ")
        self.assertEqual(("2 passed, 1 failed", 1), self.fails(1)[:2])
        self.flaky("tests/a_test.py::test_a[b c]: the clock of the moon")
        self.assertEqual(("3 passed, 0 failed", 0), self.fails(1)[:2])

    def test_that_is_listed_and_fails_twice_has_failed(self):
        self.flaky("tests/a_test.py::test_a[b c]: the clock of the moon")
        self.assertEqual(("2 passed, 1 failed", 1), self.fails(2)[:2])

    def test_bazel(self):
        line, code, said = self.result_of(bazel("C++", "//..."))
        self.assertEqual(("1 passed, 1 failed", 1), (line, code))
        self.assertIn("passes when repeated: //a:b_test", said)
        self.flaky("//a:b_test: the same")
        self.assertEqual(("2 passed, 0 failed", 0), self.result_of(bazel("C++", "//..."))[:2])

    def test_suite_that_ends_without_a_failed_test_has_failed(self):
        self.assertEqual(
            ("0 passed, 1 failed", 1), self.result_of(Suite("dies", ("sh", "-c", "exit 3"), report="junit"))[:2]
        )
        self.assertEqual(("1 passed, 1 failed", 1), self.result_of(Suite("a", ("true",)), Suite("b", ("false",)))[:2])

    def test_no_suite_is_no_success(self):
        self.assertEqual(("0 passed, 0 failed", 1), self.result_of()[:2])

    def test_lane_that_is_interrupted_ends_its_suites(self):
        begun = self.root / "begun"
        os.mkfifo(begun)

        class Interrupting(Gate):
            def run(self, suites):
                if suites:
                    return super().run(suites)
                begun.read_text()  # until the other lane's suite runs
                raise KeyboardInterrupt

        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            gate = Interrupting(self.root)
            with self.assertRaises(KeyboardInterrupt):
                gate.side_by_side([], [Suite("waits", ("sh", "-c", f"echo >{begun}; exec sleep 600"))])
        self.assertFalse(gate._running)


class Table(unittest.TestCase):
    def all_suites(self):
        lanes = (table.sources, table.package, table.local_lane, table.cluster_lane, table.engines_lane, table.rest)
        return [table.set_up(True), *(suite for lane in lanes for suite in lane(_TREE))]

    def test_each_suite_has_files_of_its_own(self):
        for suites in (self.all_suites(), table.unit(_TREE)):
            reports = [report_of(suite, Path()) for suite in suites]
            self.assertEqual(sorted(set(reports)), sorted(reports))

    def test_paths_exist(self):
        words = [word for suite in self.all_suites() for word in suite.command]
        for word in words:
            if word.startswith(("tests/", "python/", "tools/")):
                self.assertTrue((_TREE / word).exists(), word)

    def test_each_test_file_of_engines_and_frameworks_runs(self):
        words = {word for suite in self.all_suites() for word in suite.command}
        for folder in ("engines", "frameworks"):
            for path in (_TREE / "tests" / folder).glob("*_test.py"):
                self.assertIn(str(path.relative_to(_TREE)), words)

    def test_scripts_without_ending_are_found(self):
        scripts = table.shell_scripts(_TREE)
        self.assertLessEqual(
            {"tools/test", "tools/env.sh", "tools/bench/run", ".ci/run", "examples/slurm/train.sbatch"}, set(scripts)
        )
        self.assertNotIn("tools/wheel.py", scripts)


if __name__ == "__main__":
    unittest.main()
