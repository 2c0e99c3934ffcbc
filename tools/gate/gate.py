"""The run of all suites: runs them, repeats what failed to tell a race from a fault, and says what passed."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Optional

from outcome import Outcome, node_id, read_bazel, read_junit
from suite import Suite, report_of

_SUITE_TIMEOUT_S = 2700
_MAX_REPEATED = 5  # of one suite: if more fail, it is more than a race


class Gate:
    """Thread-safe: lanes of suites run side by side, since most jobs wait for one another most of the time.

    A test that fails and passes when it is repeated has failed, unless tests/flaky.txt lists it with a reason.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._dev = root / ".dev"
        self.results = self._dev / "results"
        self._started = time.monotonic()
        self._lock = threading.Lock()  # guards what follows, and the output
        self._outcomes: list[Outcome] = []
        self._to_repeat: list[tuple[Suite, Outcome]] = []
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopping = False
        shutil.rmtree(self.results, ignore_errors=True)
        self.results.mkdir(parents=True)

    def run(self, suites: Sequence[Suite]) -> bool:
        """Runs suites one after another. Returns whether all have passed."""
        outcomes = [self._run_one(suite) for suite in suites]
        return all(outcomes)

    def side_by_side(self, *lanes: Sequence[Suite]) -> bool:
        """Runs lanes of suites at the same time. Returns whether all have passed."""
        with ThreadPoolExecutor(len(lanes)) as pool:
            try:
                return all(list(pool.map(self.run, lanes)))
            except BaseException:
                self._stop()
                raise

    def has_passed(self, name: str) -> bool:
        """Returns whether the suite of this name has run and passed."""
        return any(outcome.name == name and outcome.failed == 0 for outcome in self._outcomes)

    def finish(self) -> int:
        """Repeats what failed, and prints the times, the failures and the counts. Returns the exit code."""
        for suite, outcome in self._to_repeat:
            self._repeat(suite, outcome)
        for outcome in sorted(self._outcomes, key=lambda outcome: -outcome.seconds):
            _say(f"{outcome.seconds:5.0f} s, processors {outcome.busy:5.0f} s  {outcome.name}")
        bad = [outcome for outcome in self._outcomes if outcome.failed]
        if bad:
            _say("failed: " + "; ".join(outcome.name for outcome in bad))
        for outcome in bad:
            print(*outcome.failed_tests, sep="\n", end="\n" if outcome.failed_tests else "")
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        _say(f"{minutes} min {seconds} s")
        passed, failed, skipped = (
            sum(getattr(o, count) for o in self._outcomes) for count in ("passed", "failed", "skipped")
        )
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
        return 0 if passed > 0 and failed == 0 else 1

    def _run_one(self, suite: Suite) -> bool:
        _say(suite.name)
        outcome, log = self._execute(suite)
        with self._lock:
            if outcome.code != 0:
                sys.stdout.write(log)
                sys.stdout.flush()
            self._count_flaky(outcome)
            if suite.report in ("junit", "ranks") and outcome.code == 1 and 1 <= outcome.failed <= _MAX_REPEATED:
                self._to_repeat.append((suite, outcome))
            self._outcomes.append(outcome)
            _say(str(outcome))
        return outcome.failed == 0

    def _repeat(self, suite: Suite, first: Outcome) -> None:
        """Repeats the failed tests alone; on several ranks the whole suite. A test that passes then has too short a limit, or a race."""
        _say(f"again, alone: {suite.name}")
        outcome, log = self._execute(suite, again=True)
        if outcome.code != 0:
            sys.stdout.write(log)
            return
        names = [node_id(test) for test in first.failed_tests]
        _say("passes when repeated alone: " + " ".join(names))
        if names and all(map(self._is_listed, names)):
            first.passed, first.failed, first.failed_tests = first.passed + first.failed, 0, []

    def _count_flaky(self, outcome: Outcome) -> None:
        for test in outcome.flaky:
            _say(f"passes when repeated: {test}")
            if self._is_listed(test):
                outcome.passed += 1
            else:
                outcome.failed += 1
                outcome.failed_tests.append(test)

    def _is_listed(self, test: str) -> bool:
        lines = (self._root / "tests" / "flaky.txt").read_text().splitlines()
        return any(line.startswith(f"{test}: ") and len(line) > len(test) + 2 for line in lines)

    def _execute(self, suite: Suite, again: bool = False) -> tuple[Outcome, str]:
        """Runs the suite's command. Returns what it has shown, and its output."""
        log = self.results / f"{suite.slug}{'.again' if again else ''}.log"
        command = [self._filled(suite, word) for word in (*suite.command, *(suite.repeats if again else ()))]
        begun = time.monotonic()
        code, busy = self._call(command, self._environment(suite), log, _SUITE_TIMEOUT_S if suite.venv else None)
        outcome = Outcome(suite.name, code, time.monotonic() - begun, busy)
        text = log.read_text(errors="replace")
        if suite.report == "bazel":
            read_bazel(outcome, text)
        elif suite.report:
            read_junit(outcome, report_of(suite, self.results, "0"), text)
        else:
            outcome.passed = int(code == 0)
        outcome.require_failure()
        return outcome, text

    def _filled(self, suite: Suite, word: str) -> str:
        word = word.replace("{report}", str(report_of(suite, self.results)))
        return word.replace("{cache}", str(self.results / "cache" / suite.slug)).replace("{dev}", str(self._dev))

    def _call(
        self, command: list[str], environment: dict[str, str], log: Path, timeout_s: Optional[int]
    ) -> tuple[int, float]:
        """Runs a command in a session of its own. Returns its exit code and its processor seconds; the code is 124 if it took too long, 1 if the
        gate is being stopped.
        """
        if command[0] == "as-root":
            command = [*_root_prefix(environment), *command[1:]]
        with open(log, "wb") as output:
            with self._lock:
                if self._stopping:
                    return 1, 0
                process = subprocess.Popen(
                    command, cwd=self._root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    start_new_session=True,
                )  # fmt: skip
                self._running.add(process)
            try:
                busy = _wait(process, timeout_s)
                return process.wait(), busy
            except subprocess.TimeoutExpired:
                _end(process)
                output.write(f"the suite took longer than {timeout_s} s\n".encode())
                return 124, 0
            finally:
                _end(process)
                with self._lock:
                    self._running.remove(process)

    def _stop(self) -> None:
        """Ends the suites that run, with what they have started; no others start."""
        with self._lock:
            self._stopping = True
            for process in self._running:
                _end(process)

    def _environment(self, suite: Suite) -> dict[str, str]:
        """The caller's, with the programs and the package of this project, and those of the suite's environment, first."""
        own = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        own.update({name: self._filled(suite, value) for name, value in suite.variables.items()})
        if not suite.venv:
            return own
        package = self._dev / ("wheel" if suite.wheel else "stage")
        venv = self._dev / f"venv-{suite.venv}"
        own.pop("PYTHONHOME", None)
        own["PYTHONPATH"] = ":".join(filter(None, (str(package), own.get("PYTHONPATH"))))
        own["VIRTUAL_ENV"] = str(venv)
        own["PATH"] = f"{venv}/bin:{package}/horovod/bin:{own['PATH']}"
        return own


def _root_prefix(environment: dict[str, str]) -> list[str]:
    """The words before a command that needs root."""
    if os.geteuid() == 0:
        return []
    kept = ("HOME", "PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    return ["sudo", "env", *(f"{name}={environment[name]}" for name in kept if name in environment)]


def _wait(process: subprocess.Popen[bytes], timeout_s: Optional[int]) -> float:
    """Waits for a process. Returns the seconds of processors that it and the processes that it waited for have used.

    Errors:
    subprocess.TimeoutExpired
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        if not select.select([descriptor], [], [], timeout_s)[0]:
            raise subprocess.TimeoutExpired(process.args, timeout_s or 0)
    finally:
        os.close(descriptor)
    try:
        fields = (
            Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        )  # it has ended, but is not reaped
    except FileNotFoundError:  # _end() has reaped it: the gate is being stopped
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a suite that still runs, with its process group."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # of root's, sudo passes a signal on
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _say(text: str) -> None:
    print(f"==> {text}", file=sys.stderr, flush=True)
