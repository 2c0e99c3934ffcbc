"""What a suite's run has shown: how many tests passed, failed and were skipped, and their names."""

import dataclasses
import re
import xml.etree.ElementTree as tree
from pathlib import Path

_PYTEST_FAILED = re.compile(r"(?:^|<stdout>:)(?:FAILED|ERROR) (\S+::.*)")
_BAZEL_LINE = re.compile(r"^(//\S+) .*?(PASSED|FAILED|TIMEOUT|NO STATUS|FLAKY)")


@dataclasses.dataclass
class Outcome:
    """Counts of one run. `busy`: seconds of processors. `failed_tests`: as pytest or Bazel names them, with the reason if there is
    one. `flaky`: those of Bazel that passed when they were repeated.
    """

    name: str
    code: int
    seconds: float
    busy: float = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failed_tests: list[str] = dataclasses.field(default_factory=list)
    flaky: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name}: {self.passed} passed, {self.failed} failed, {self.skipped} skipped, {self.seconds:.0f} s"

    def require_failure(self) -> None:
        """Counts a run that failed without a failed test as one failed test."""
        if self.code != 0 and self.failed == 0:
            self.failed = 1


def node_id(failed_test: str) -> str:
    """Returns a failed test's name without the reason."""
    return failed_test.split(" - ", 1)[0]


def read_junit(outcome: Outcome, report: Path, log: str) -> None:
    """Counts what pytest wrote to the JUnit file `report`; none if it does not exist. Names the failed tests by `log`."""
    outcome.failed_tests = sorted(
        {found[1].rstrip() for found in map(_PYTEST_FAILED.search, log.splitlines()) if found}
    )
    if not report.exists():
        return
    suite = tree.parse(report).getroot().find("testsuite")
    assert suite is not None
    total, failures, errors, skipped = (
        int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
    )
    outcome.failed = failures + errors
    outcome.skipped = skipped
    outcome.passed = total - outcome.failed - skipped


def read_bazel(outcome: Outcome, log: str) -> None:
    """Counts the lines in which Bazel sums up its tests."""
    for found in filter(None, map(_BAZEL_LINE.match, log.splitlines())):
        name, state = found.groups()
        if state == "PASSED":
            outcome.passed += 1
        elif state == "FLAKY":
            outcome.flaky.append(name)
        else:
            outcome.failed += 1
            outcome.failed_tests.append(name)
