"""The results of a GPU check: read from the records of the parts, written as JSON, as JUnit's XML and as a table of one screen."""

import dataclasses
import json
import xml.etree.ElementTree as tree
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

_WIDTH = 100
_LINES_OF_FAILURES = 12


@dataclasses.dataclass
class PartResult:
    """What became of a part.

    Attributes:
      name: the part.
      seconds: the time that it took.
      tests: a dict for each test or check: test, outcome (passed, failed, skipped), seconds, message.
      figures: what it measured: name, value, unit, and aim if there is one.
      problem: why the part itself did not end as it should; empty if it did.
      was_run: False if no time was left for it.
    """

    name: str
    seconds: float = 0.0
    tests: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    figures: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    problem: str = ""
    was_run: bool = True

    def count(self, outcome: str) -> int:
        return sum(test["outcome"] == outcome for test in self.tests)

    @property
    def is_good(self) -> bool:
        return self.was_run and not self.problem and self.count("failed") == 0


def read_record(result: PartResult, path: Path) -> None:
    """Adds what the tests of a part have recorded, one JSON object a line, to its result. A test that has begun and not ended has failed.

    Args:
      result: the result.
      path: the file; a missing one is an empty one.
    """
    running: Optional[str] = None
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # torn: its writer was killed
        event = entry.pop("event")
        if event == "begin":
            running = entry["test"]
        elif event == "figure":
            result.figures.append(entry)
        else:
            result.tests.append(entry)
            running = None if entry["test"] == running else running
    if running is not None:
        result.tests.append({"test": running, "outcome": "failed", "seconds": 0.0, "message": "it did not end in time"})


def as_json(machine: dict[str, Any], results: Sequence[PartResult]) -> str:
    """Returns everything as JSON.

    Args:
      machine: the facts about the machine.
      results: the parts so far.
    """
    parts = [{**dataclasses.asdict(each), "passed": each.is_good} for each in results]
    return json.dumps({"machine": machine, "parts": parts}, indent=1) + "\n"


def as_junit(results: Sequence[PartResult]) -> str:
    """Returns the tests as JUnit's XML, with a failed test for a part that did not end as it should.

    Args:
      results: the parts so far.
    """
    suite = tree.Element("testsuite", name="gpu")
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for result in results:
        for test in result.tests:
            case = tree.SubElement(
                suite, "testcase", classname=result.name, name=test["test"], time=f"{test['seconds']:.3f}"
            )
            counts["tests"] += 1
            if test["outcome"] == "failed":
                counts["failures"] += 1
                tree.SubElement(case, "failure", message=_xml_text(test["message"])[:200]).text = _xml_text(
                    test["message"]
                )
            elif test["outcome"] == "skipped":
                counts["skipped"] += 1
                tree.SubElement(case, "skipped", message=_xml_text(test["message"])[:200])
        if result.problem or not result.was_run:
            case = tree.SubElement(suite, "testcase", classname=result.name, name="the part as a whole")
            tree.SubElement(case, "error", message=_xml_text(result.problem or "not run"))
            counts["tests"] += 1
            counts["errors"] += 1
    suite.attrib.update({name: str(value) for name, value in counts.items()})
    root = tree.Element("testsuites")
    root.append(suite)
    return tree.tostring(root, encoding="unicode") + "\n"


def _xml_text(text: str) -> str:
    """XML has no place for most control characters."""
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in text)


def as_table(machine: dict[str, Any], results: Sequence[PartResult]) -> str:
    """Returns a table of one screen: the machine, a line for each part, the figures, the first failures.

    Args:
      machine: the facts about the machine.
      results: the parts so far.
    """
    lines = [", ".join(f"{name} {value}" for name, value in machine.items() if value)]
    lines += [f"{'part':12} {'result':9} {'passed':>6} {'failed':>6} {'skipped':>7} {'seconds':>7}"]
    for result in results:
        word = "not run" if not result.was_run else "passed" if result.is_good else "FAILED"
        counts = "".join(
            f" {result.count(name):>{width}}" for name, width in (("passed", 6), ("failed", 6), ("skipped", 7))
        )
        lines.append(f"{result.name:12} {word:9}{counts} {result.seconds:7.1f}  {result.problem}".rstrip())
    lines += [_figure_line(figure) for result in results for figure in result.figures]
    failures = [
        f"{result.name}: {test['test']}: {(_last_line(test['message']))}"
        for result in results
        for test in result.tests
        if test["outcome"] == "failed"
    ]
    lines += failures[:_LINES_OF_FAILURES]
    if len(failures) > _LINES_OF_FAILURES:
        lines.append(f"... and {len(failures) - _LINES_OF_FAILURES} more, in junit.xml")
    return "\n".join(line[: _WIDTH * 2] for line in lines) + "\n"


def _figure_line(figure: dict[str, Any]) -> str:
    aim = f"  (aim: {figure['aim']})" if figure.get("aim") else ""
    return f"  {figure['name']:58} {figure['value']:>12} {figure['unit']}{aim}"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
