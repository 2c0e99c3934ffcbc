"""A suite of tests: a command, where it runs, and the report that it writes."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

_BAZEL = ("bazel", "test", "--keep_going", "--flaky_test_attempts=2", "--ui_event_filters=-info,-debug")
_PYTEST = ("python", "-m", "pytest", "-q", "-rfEs", "--durations=5", "--junitxml={report}", "-o", "cache_dir={cache}")
_FAILED_ALONE = ("--last-failed", "--last-failed-no-failures", "none")
_NONE: Mapping[str, str] = MappingProxyType({})


class Suite(NamedTuple):
    """A command whose tests are counted.

    `venv`: the environment .dev/venv-NAME that it runs in; "": the caller's. `wheel`: it imports the wheel's package, not the staged one.
    `report`: what it writes: "": nothing, it passes or fails as a whole; "junit": a file {report}; "ranks": such a file per rank; "bazel": lines
    of Bazel. `repeats`: further arguments that repeat only what has failed. In words of `command` and in `variables`, {report} and {cache} are
    the suite's own paths, and {dev} is .dev.
    """

    name: str
    command: tuple[str, ...]
    venv: str = ""
    wheel: bool = False
    report: str = ""
    repeats: tuple[str, ...] = ()
    variables: Mapping[str, str] = _NONE

    @property
    def slug(self) -> str:
        """The name of its files."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def check(name: str, *command: str) -> Suite:
    """A command that passes or fails as a whole."""
    return Suite(name, command)


def bazel(name: str, *arguments: str) -> Suite:
    """Bazel's tests. One that fails is repeated at once: it passes then if it has a race."""
    return Suite(name, (*_BAZEL, *arguments), report="bazel")


def pytest(
    name: str,
    venv: str,
    *paths: str,
    only: str = "",
    wheel: bool = False,
    root: bool = False,
    variables: Mapping[str, str] = _NONE,
) -> Suite:
    """Tests in one process. `only`: an expression of -k. `root`: they need root."""
    command = (*(["as-root"] if root else []), *_PYTEST, *paths, *_only(only))
    return Suite(name, command, venv, wheel, "junit", _FAILED_ALONE, variables)


def on_ranks(
    name: str, venv: str, ranks: int, *paths: str, wheel: bool = False, variables: Mapping[str, str] = _NONE
) -> Suite:
    """Tests of python/tests, all files or `paths`, in processes that horovodrun starts."""
    command = ("python", "python/tests/run_ranks.py", str(ranks), *paths, "--", "--junitxml={report}")
    title, report = (f"{name}, 1 rank", "junit") if ranks == 1 else (f"{name}, {ranks} ranks", "ranks")
    return Suite(title, command, venv, wheel, report, variables=variables)


def report_of(suite: Suite, results: Path, rank: str = "$HOROVOD_RANK") -> Path:
    """The file that `suite` writes; with the rank, as pytest expands variables in it."""
    return results / (f"{suite.slug}-{rank}.xml" if suite.report == "ranks" else f"{suite.slug}.xml")


def _only(expression: str) -> tuple[str, ...]:
    return ("-k", expression) if expression else ()
