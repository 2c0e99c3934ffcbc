"""Mutants of a source text: copies in which one small thing is wrong. Pure."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple


class Mutant(NamedTuple):
    """One line that is to be replaced by another one."""

    line: int  # from 1
    before: str
    after: str


# What stands for what; each is tried at each place of a line.
_SWAPS = {
    "==": "!=",
    "!=": "==",
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " + ": " - ",
    " - ": " + ",
    "++": "--",
}
_CPP_SWAPS = {
    **_SWAPS,
    "&&": "||",
    "||": "&&",
    "true": "false",
    "false": "true",
    "std::min(": "std::max(",
    "std::max(": "std::min(",
    "any_of": "none_of",
    "none_of": "any_of",
}
_PYTHON_SWAPS = {
    **_SWAPS,
    " and ": " or ",
    " or ": " and ",
    " is not None": " is None",
    " is None": " is not None",
    "True": "False",
    "False": "True",
    "min(": "max(",
    "max(": "min(",
    "any(": "all(",
    "all(": "any(",
}
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_CPP_STATEMENT = re.compile(
    r"^\s*(?!return|delete|using|case|default|friend|static_assert|#|//|\}|public|private)[\w:>.\-\[\]*()&]+(\.|->|\(| \+?-?= |\+\+)[^{]*;$"
)
_CPP_GUARD = re.compile(r"^\s*if \(.*\) (return|continue|break).*;$")
_PYTHON_STATEMENT = re.compile(
    r"^\s*(?!return|raise|def|class|import|from|assert|@|with|for|if|else|elif|try|except|finally|yield|global)[\w.\[\]]+(\(.*\)| [+-]?= .+)$"
)


def mutants_of(text: str, is_python: bool) -> list[Mutant]:
    """Returns all mutants of a source, in the order of its lines."""
    found = []
    texts = _lines_of_texts(text) if is_python else set()
    for number, line in enumerate(text.split("\n"), 1):
        if number not in texts and _is_code(line, is_python):
            found += [
                Mutant(number, line, after) for after in dict.fromkeys(_changed(line, is_python)) if after != line
            ]
    return found


def _lines_of_texts(text: str) -> set[int]:
    """Returns the lines of docstrings and of other texts that stand alone."""
    alone = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return {line for node in alone for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _is_code(line: str, is_python: bool) -> bool:
    own = line.strip()
    if is_python:
        return bool(own) and not own.startswith(("#", "import ", "from ", "@"))
    return bool(own) and not own.startswith(("//", "#", "namespace", "using ", "template", "static_assert"))


def _changed(line: str, is_python: bool) -> Iterator[str]:
    code, comment = _split(line, "  # " if is_python else "  // ")
    texts = [match.span() for match in _TEXT.finditer(code)]
    for old, new in (_PYTHON_SWAPS if is_python else _CPP_SWAPS).items():
        for match in re.finditer(re.escape(old), code):
            at = match.start()
            if _is_free(code, at, old, texts):
                yield code[:at] + new + code[at + len(old) :] + comment
    for match in re.finditer(r"(?<![\w.\"'])\d+(?![\w.\"'])", code):
        if not any(start <= match.start() < end for start, end in texts):
            yield code[: match.start()] + str(int(match[0]) + 1) + code[match.end() :] + comment
    yield from _negated(code, comment, is_python)
    yield from _left_out(code, is_python)


def _split(line: str, mark: str) -> tuple[str, str]:
    at = line.find(mark)
    return (line, "") if at < 0 else (line[:at], line[at:])


# A word is not a part of a longer one, and nothing within a text counts.
def _is_free(code: str, at: int, old: str, texts: list[tuple[int, int]]) -> bool:
    if any(start <= at < end for start, end in texts):
        return False
    is_word = old[0].isalpha() or old[0] == "_"
    return not is_word or at == 0 or not (code[at - 1].isalnum() or code[at - 1] in "_.")


def _negated(code: str, comment: str, is_python: bool) -> Iterator[str]:
    if is_python:
        for match in re.finditer(r"\bnot (?!in\b|None\b)", code):
            yield code[: match.start()] + code[match.end() :] + comment
        if condition := re.match(r"^(\s*(?:el)?if )(.+):$", code):
            yield f"{condition[1]}not ({condition[2]}):{comment}"
        return
    for match in re.finditer(r"!(?=[\w(])", code):
        yield code[: match.start()] + code[match.end() :] + comment


def _left_out(code: str, is_python: bool) -> Iterator[str]:
    indent = code[: len(code) - len(code.lstrip())]
    if is_python:
        if _PYTHON_STATEMENT.match(code) and code.count("(") == code.count(")"):
            yield f"{indent}pass"
    elif (_CPP_STATEMENT.match(code) or _CPP_GUARD.match(code)) and code.count("(") == code.count(")"):
        yield f"{indent};"
