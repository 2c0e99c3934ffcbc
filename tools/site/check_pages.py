"""check_pages.py: checks the code in the documentation: Python and shell blocks must parse, and options must exist.

The line <!-- fragment --> before a block excludes it.
"""

import ast
import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

from lay_out import PAGES, ROOT

PROGRAMS = ROOT / ".dev" / "stage" / "horovod" / "bin"
# Each with the subcommands whose options it takes, too.
SUBCOMMANDS = {"horovodrun": ["status", "drain", "stop"], "horovod-agent": [], "horovod-rendezvousd": []}
# Where options are declared, if the programs are not built.
SOURCES = [
    "options/*.cc",
    "launcher/*.cc",
    "launcher/cli/*.cc",
    "agent/*.cc",
    "rendezvous/daemon/*.cc",
    "base/settings/*.cc",
]
# Other programs of this repository that have options.
OTHER_PROGRAMS = [
    "examples/**/*.py",
    "tests/simulation/*.cc",
    "tests/gpu/run",
    "tests/gpu/bundle/run",
    "tools/*",
    "tools/bench/**/*",
    "tests/**/bench*.cc",
]
# Options of schedulers and other tools, by which a text names them alone.
OTHERS = {
    *(
        "--cpus-per-task",
        "--distribution",
        "--gpus",
        "--gpus-per-node",
        "--gpus-per-task",
        "--het-group",
        "--mem-per-cpu",
        "--no-kill",
    ),
    *(
        "--nodes",
        "--ntasks",
        "--ntasks-per-node",
        "--open-mode",
        "--overlap",
        "--requeue",
        "--signal",
        "--unbuffered",
    ),  # Slurm
    *("--local-addr", "--max-restarts", "--nnodes", "--rdzv-conf", "--rdzv-endpoint", "--rdzv-id"),  # torchrun
    *("--auto-compaction-retention", "--map-by", "--net", "--py-files"),
}
# Pages that name options of others: Horovod's in a table that a test checks, and those of measurements. And what the programs' help texts say.
UNCHECKED = {"docs/compatibility.md", "docs/programs.md", "tools/bench/RESULTS.md"}
# Options of Horovod's that horovodrun refuses.
REFUSED = {
    "--mpi",
    "--jsrun",
    "--num-nccl-streams",
    "--tcp",
    "--mpi-args",
    "--mpi-threads-disable",
    "--binding-args",
    "--gloo",
}
FRAGMENT = "<!-- fragment -->"
FENCE = re.compile(r"( *)(```+|~~~+)(\w*)")
MODULE = {"-m", "--module"}  # begin the command of the workers, as "python -m" does
END_OF_COMMAND = {"|", "||", "&&", ";", "&", ">", ">>", "<", "--", "python", "python3"}


class Code(NamedTuple):
    """A block of a page, or a span (language "span")."""

    place: str
    language: str
    text: str


def fenced_blocks(page: str, lines: list[str]) -> Iterator[Code]:
    """The fenced blocks; what has been yielded is blank in `lines` afterwards."""
    number, before = 0, ""
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence is None:
            before = lines[number] if lines[number].strip() else before
            number += 1
            continue
        end = number + 1
        while end < len(lines) and lines[end].strip() != fence.group(2):
            end += 1
        if before.strip() != FRAGMENT:
            yield Code(f"{page}:{number + 2}", fence.group(3) or "text", dedent("\n".join(lines[number + 1 : end])))
        lines[number : end + 1] = [""] * len(lines[number : end + 1])
        number, before = end + 1, ""


def codes(page: str, text: str) -> Iterator[Code]:
    lines = text.split("\n")
    yield from fenced_blocks(page, lines)
    for number, line in enumerate(lines, 1):
        if line.startswith("    ") and not re.match(r" +([-*]|\d+\.) ", line):
            yield Code(f"{page}:{number}", "span", line.strip())
        else:
            for span in re.findall(r"`([^`]+)`", line):
                yield Code(f"{page}:{number}", "span", span)


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", text))


def declared_in_sources() -> set[str]:
    found: set[str] = set()
    for pattern in SOURCES:
        for path in ROOT.glob(pattern):
            for literal in re.findall(r'"(-[^"\s]*)"', path.read_text()):
                found |= options_in(literal)
    return found


@functools.cache
def options_of_others() -> set[str]:
    found = OTHERS | REFUSED
    for path in (path for pattern in OTHER_PROGRAMS for path in ROOT.glob(pattern) if path.is_file()):
        found |= options_in(path.read_text(errors="replace"))
    return found


def known_options() -> dict[str, set[str]]:
    """The options of each program, by its help text, or of all programs, by their sources."""
    if not all((PROGRAMS / program).exists() for program in SUBCOMMANDS):
        return dict.fromkeys(SUBCOMMANDS, declared_in_sources())
    known = {}
    for program, subcommands in SUBCOMMANDS.items():
        calls = [[program, "--help"], *([program, subcommand, "--help"] for subcommand in subcommands)]
        texts = [
            subprocess.run([PROGRAMS / call[0], *call[1:]], stdout=subprocess.PIPE, text=True, check=True)
            for call in calls
        ]
        known[program] = set().union(*(options_in(each.stdout) for each in texts))
    return known


def words_of(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:  # the quotation ends on another line
        return command.split()


def unknown_options(code: Code, known: dict[str, set[str]]) -> Iterator[str]:
    everything = set().union(*known.values()) | options_of_others()
    for line in code.text.replace("\\\n", " ").split("\n"):
        words = [word.strip("[](),.:") for word in words_of(line)]
        program = None
        for word in words:
            name = word.rpartition("/")[2]
            if name in known:
                program = name
            elif word in END_OF_COMMAND:
                program = None
            elif program and re.fullmatch(r"--?[a-zA-Z][\w-]*(=.*)?", word):
                option = word.partition("=")[0]
                if option not in known[program] | REFUSED:
                    yield f"{code.place}: {program} has no option {option}"
                if option in MODULE:
                    program = None  # what follows is the module's
        alone = re.match(r"--[a-z][\w-]*(?=[ =]|$)", line) if code.language == "span" else None
        if alone and alone.group() not in everything:
            yield f"{code.place}: no program has an option {alone.group()}"


def problem_of(code: Code) -> str:
    if code.language in ("python", "py"):
        try:
            ast.parse(code.text)
        except SyntaxError as error:
            return f"{code.place}: this Python does not parse: {error}"
    if code.language in ("bash", "sh", "shell"):
        parsed = subprocess.run(["bash", "-n"], input=code.text, stderr=subprocess.PIPE, text=True, check=False)
        if parsed.returncode != 0:
            return f"{code.place}: bash does not parse this: {parsed.stderr.strip()}"
    return ""


def problems() -> list[str]:
    known = known_options()
    found = []
    for path in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        page = str(path.relative_to(ROOT))
        for code in codes(page, path.read_text()):
            found += [problem_of(code), *(() if page in UNCHECKED else unknown_options(code, known))]
    return [problem for problem in found if problem]


if __name__ == "__main__":
    found = problems()
    print("".join(f"check_pages: {problem}\n" for problem in found), end="", file=sys.stderr)
    sys.exit(1 if found else 0)
