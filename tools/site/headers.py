"""The reference of the C and C++ API: pages that are made from the comments and declarations of the public headers."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "rendezvous" / "c_api" / "include" / "horovod"
C_HEADER = FOLDER / "rendezvous.h"
CPP_HEADER = FOLDER / "rendezvous.hpp"
EXPORT = "HVD_RENDEZVOUS_EXPORT"

COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*", re.S)
NO_WORDS = re.compile(r"extern |namespace |HOROVOD_")  # what an end of a block says of it
DECLARED = re.compile(r"(?:class|struct) (\w+)[^;{]*\{")


class Entry(NamedTuple):
    """One declaration with its description, or the title of a section (then `declaration` is empty)."""

    name: str
    declaration: str
    words: str


def plain(comment: str) -> str:
    """The text of a comment, without its marks."""
    if comment.startswith("/*"):
        lines = comment[2:-2].split("\n")
        return "\n".join(re.sub(r"^\s*\* ?", "", line) if n else line.strip() for n, line in enumerate(lines)).strip()
    return "\n".join(re.sub(r"^\s*// ?", "", line) for line in comment.split("\n")).strip()


def end_of_statement(text: str, start: int, stops_at_body: bool) -> int:
    """The position behind the declaration that begins at `start`: behind its ';', or behind the body of a function."""
    depth = {"(": 0, "{": 0}
    position = start
    while position < len(text):
        comment = COMMENTS.match(text, position)
        if comment:
            position = comment.end()
            continue
        letter = text[position]
        if letter in "({":
            depth[letter] += 1
        elif letter in ")}":
            depth["(" if letter == ")" else "{"] -= 1
            if (
                letter == "}"
                and stops_at_body
                and not any(depth.values())
                and text[position + 1 : position + 2] not in ";(,"
            ):
                return position + 1
        elif letter == ";" and not any(depth.values()):
            return position + 1
        position += 1
    return position


def pieces(text: str, stops_at_body: bool = False) -> Iterator[tuple[str, str]]:
    """The declarations of a header, each with the comment that stands before it or behind it on its last line.

    A comment also describes the declarations that follow without an empty line. A free-standing comment has no
    declaration.
    """
    position, comment, used = 0, "", True
    while position < len(text):
        space = re.compile(r"\s*").match(text, position)
        assert space is not None
        if space.group().count("\n") > 1:
            if not used:
                yield comment, ""
            comment, used = "", True
        position = space.end()
        found = COMMENTS.match(text, position)
        skipped = re.compile(r"#(?:.*\\\n)*.*|extern \"C\" \{|\}|(?:public|private):|namespace \w+ \{").match(
            text, position
        )
        if found:
            comment, used, position = plain(found.group()), False, found.end()
        elif skipped:
            if not used:
                yield comment, ""
            position, comment, used = skipped.end(), "", True
        elif position < len(text):
            end = end_of_statement(text, position, stops_at_body)
            behind = re.compile(r"[ \t]*(/\*.*?\*/)", re.S).match(text, end)
            yield (" ".join(plain(behind.group(1)).split()) if behind else comment), text[position:end]
            position, used = (behind.end() if behind else end), True


def name_of(declaration: str) -> str:
    if declaration.startswith("enum"):
        return "Result codes"
    if declaration.startswith("typedef"):
        return declaration.rstrip(";").split()[-1]
    return str(re.findall(r"(\w+)\s*\(", re.sub(EXPORT, "", declaration))[0])


def laid_out(function: str) -> str:
    """The declaration of a function on one line, or with a line for each parameter."""
    line = " ".join(function.replace(EXPORT, "").split())
    if len(line) <= 90:
        return line
    depth, made = 0, ""
    for letter in line:
        depth += (letter == "(") - (letter == ")")
        made += letter
        if depth == 1 and (letter == "," or (made.count("(") == 1 and letter == "(")):
            made += "\n    "
    return made.replace("\n     ", "\n    ")


def c_entries() -> list[Entry]:
    entries = []
    for comment, declaration in pieces(C_HEADER.read_text()):
        if declaration:
            is_function = declaration.startswith(EXPORT)
            entries.append(Entry(name_of(declaration), laid_out(declaration) if is_function else declaration, comment))
        elif comment.startswith("----"):
            entries.append(Entry(comment.strip("- \n"), "", ""))
        elif not NO_WORDS.match(comment):
            entries.append(Entry("", "", comment))
    return entries


def signature_of(member: str) -> str:
    """A member function without its body and its initializers; otherwise the member as it is."""
    depth = 0
    for position, letter in enumerate(member):
        depth += (letter == "(") - (letter == ")")
        initializers = letter == ":" and "::" not in member[position - 1 : position + 2]
        if depth == 0 and "(" in member[:position] and (letter == "{" or initializers):
            return member[:position].strip() + ";"
    return member


def members_of(name: str, body: str) -> Iterator[Entry]:
    """The public functions of a class. One without a comment is described by the C functions that it stands for."""
    public = body.partition("public:")[2].partition("private:")[0]
    for comment, member in pieces(public, stops_at_body=True):
        if not member or "= default" in member or "operator" in member:
            continue
        found = re.search(r"(\w+)\(", member)
        if found is None:
            continue
        used = re.findall(r"\bhvd_rendezvous_\w+", member) or [f"hvd_rendezvous_{found.group(1)}"]
        calls = [call for call in dict.fromkeys(used) if call in c_functions()]
        words = "\n\n".join(part for part in (comment, f"C functions: {', '.join(calls)}." if calls else "") if part)
        yield Entry(f"{name}::{found.group(1)}", laid_out(signature_of(member)), words)


def cpp_entries() -> list[Entry]:
    text = CPP_HEADER.read_text()
    text = re.sub(r"\nnamespace internal \{.*\n\}  // namespace internal\n", "\n", text, flags=re.S)
    entries = []
    for comment, declaration in pieces(text):
        declared = DECLARED.match(declaration)
        if declared is None:
            if not declaration and not NO_WORDS.match(comment):
                entries.append(Entry("", "", comment))
        elif declaration.startswith("struct") or ": public std::" in declaration:
            entries.append(Entry(declared.group(1), declaration, comment))
        else:
            entries.append(Entry(declared.group(1), "", comment))
            entries += members_of(declared.group(1), declaration)
    return entries


@functools.cache
def c_functions() -> set[str]:
    """The functions that the library exports, found in another way than by `pieces`."""
    return set(re.findall(EXPORT + r"[^;]*?\b(hvd_rendezvous_\w+)\s*\(", COMMENTS.sub("", C_HEADER.read_text())))


def anchor(name: str) -> str:
    return name.replace("::", ".").replace(" ", "-")


def with_links(line: str) -> str:
    """A line of text, in which names of C functions are links and asterisks are only asterisks."""
    parts = line.split("`")
    for n in range(0, len(parts), 2):
        parts[n] = re.sub(
            r"\b(hvd_rendezvous_\w+)(?:\(\))?",
            lambda name: (
                f"[`{name.group(1)}`](c_api.md#{name.group(1)})" if name.group(1) in c_functions() else name.group()
            ),
            parts[n].replace("*", "\\*"),
        )
    return "`".join(parts)


def markdown(words: str) -> str:
    """A comment as Markdown: indented lines are code, and a list begins after an empty line."""
    lines: list[str] = []
    code = False
    for line in words.split("\n"):
        in_list = bool(lines) and re.match(r" *- |    ", lines[-1]) is not None and not code
        is_code = re.match(r" {2,}(?! *- )", line) is not None and not in_list
        if is_code != code and (line.strip() or not code):
            lines = [*lines, "```cpp"] if is_code else [*lines[: -1 if not lines[-1].strip() else None], "```", ""]
            code = is_code
        if not code and re.match(r" *- ", line) and not in_list:
            lines.append("")
        if in_list and line.startswith("    "):
            line = "    " + line.strip()
        lines.append(line.removeprefix("  ") if code else with_links(re.sub(r"^ +(?=- )", "", line)))
    return "\n".join([*lines, "```"] if code else lines)


def page(title: str, about: str, entries: list[Entry], language: str) -> str:
    parts = [f"# {title}", about]
    for entry in entries:
        if not entry.name:
            parts.append(markdown(entry.words))
            continue
        is_section = not entry.declaration
        parts.append(f"{'##' if is_section else '###'} {entry.name} {{ #{anchor(entry.name)} }}")
        if entry.declaration:
            parts.append(f"```{language}\n{entry.declaration}\n```")
        parts.append(markdown(entry.words))
    return "\n\n".join(part for part in parts if part) + "\n"


def pages() -> dict[str, str]:
    """The pages by their names below reference/."""
    return {
        "c_api.md": page(
            "C API: horovod/rendezvous.h",
            "The rendezvous server for schedulers that embed it. [Embedding](../docs/embedding.md) is the guide, "
            "[scheduler_c](../examples/scheduler_c/README.md) a complete program.",
            c_entries(),
            "c",
        ),
        "cpp_api.md": page(
            "C++ API: horovod/rendezvous.hpp",
            "C++17 classes over the [C API](c_api.md). [Embedding](../docs/embedding.md) is the guide, "
            "[scheduler_cmake](../examples/scheduler_cmake/README.md) a complete program.",
            cpp_entries(),
            "cpp",
        ),
    }


def problems() -> list[str]:
    """What the reference lacks: a public function without an entry, or without a description."""
    entries = {entry.name: entry for entry in c_entries()}
    found = [f"{name} has no entry" for name in sorted(c_functions() - entries.keys())]
    found += [f"{name} has no comment" for name in sorted(c_functions() & entries.keys()) if not entries[name].words]
    found += [f"{entry.name} has no comment" for entry in cpp_entries() if "::" in entry.name and not entry.words]
    return found


def anchors() -> dict[str, list[str]]:
    """The anchors of all functions, by page."""
    return {
        "c_api": sorted(c_functions()),
        "cpp_api": [anchor(entry.name) for entry in cpp_entries() if "::" in entry.name],
    }
