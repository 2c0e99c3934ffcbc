"""programs_page.py [--check] [PROGRAM...]: brings the options in docs/programs.md up to date with the programs' --help.

They stand between the lines <!-- help: PROGRAM [SUBCOMMAND] --> and <!-- end of help -->; all other text is written by hand. Takes the programs of
.dev/stage, unless the command line has their paths. With --check it changes nothing: it fails if the page is not up to date, and says where.
"""

import difflib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).absolute().parents[2]  # not resolved: Bazel's copy of the tree has links
PAGE = ROOT / "docs" / "programs.md"
PROGRAMS = ROOT / ".dev" / "stage" / "horovod" / "bin"
CALLS = [
    "horovodrun",
    "horovodrun status",
    "horovodrun drain",
    "horovodrun stop",
    "horovod-agent",
    "horovod-rendezvousd",
]
PART = re.compile(r"^<!-- help: ([\w -]+?) -->\n.*?^<!-- end of help -->$", re.M | re.S)
COLUMN = 46  # where meanings begin, as options/flag_table.cc sets it


def table(lines: list[str]) -> str:
    """The options of a group: each begins with its names and its value; if these are long, the meaning is on the next line."""
    rows = ["| option | meaning |", "|---|---|"]
    while lines:
        line = lines.pop(0)
        if lines and not lines[0][:COLUMN].strip():
            option, meaning = line.strip(), lines.pop(0).strip()
        else:
            option, meaning = line[:COLUMN].strip(), line[COLUMN:]
            if line[COLUMN - 1 : COLUMN] != " ":
                raise ValueError(f"not an option with its meaning: {line.strip()}")
        spans = option.replace(",", "`, `", option.partition(" ")[0].count(","))
        cells = [text.replace("|", "\\|") for text in (f"`{spans}`", meaning)]
        rows.append(f"| {cells[0]} | {cells[1]} |")
    return "\n".join(rows)


def markdown(help_text: str) -> str:
    """A help text, with a table for each group of options."""
    parts, words = [], list[str]()
    for block in help_text.strip().split("\n\n"):
        heading, _, lines = block.partition("\n")
        # Below the options text follows, which may have lists of options, too.
        if heading.endswith(":") and lines.startswith("  -") and not words:
            parts += [f"**{heading[:-1]}**", table(lines.split("\n"))]
        elif not parts:
            parts.append(f"```text\n{block}\n```")
        else:
            words.append(block)
    if words:
        parts.append("```text\n" + "\n\n".join(words) + "\n```")
    return "\n\n".join(parts)


def up_to_date(page: str, help_of: Callable[[str], str]) -> str:
    """The page with what help_of says of each call."""
    calls = PART.findall(page)
    if calls != CALLS:
        raise ValueError(f"the page has the options of {calls}, not of {CALLS}")

    def part(found: re.Match[str]) -> str:
        call = found.group(1)
        return f"<!-- help: {call} -->\n\n{markdown(help_of(call))}\n\n<!-- end of help -->"

    return PART.sub(part, page)


def main(arguments: list[str]) -> int:
    check = arguments[:1] == ["--check"]
    programs = {Path(path).name: Path(path).absolute() for path in arguments[check:]}

    def help_of(call: str) -> str:
        name, *subcommand = call.split()
        command = [programs.get(name, PROGRAMS / name), *subcommand, "--help"]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    page = PAGE.read_text()
    wanted = up_to_date(page, help_of)
    if not check:
        PAGE.write_text(wanted)
    elif page != wanted:
        names = "docs/programs.md", "what --help says"
        sys.stderr.writelines(difflib.unified_diff(page.splitlines(True), wanted.splitlines(True), *names, n=1))
        print("docs/programs.md is not up to date: python3 tools/site/programs_page.py writes it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
