"""Checks that the source tree keeps to its layers. Run by the tests as //tools:layering_test; by hand: tools/check_layering.py [ROOT].

It checks the `#include "..."` lines of all C++ files, which show dependencies more exactly than BUILD files:

1. A file includes only what its folder may depend on (ALLOWED in layers.py).
2. No file includes itself through others, and no folder depends on itself through other folders.
3. A third-party library that one folder wraps is included there only (THIRD_PARTY).
4. The environment is read in one file, and the clock is read and slept on in one file (ONLY_IN); tests don't sleep either. Nobody waits by the wall
   clock.
5. A file's namespace is its folder's: hvd::collectives::gloo for collectives/gloo; what is directly in base is hvd's own. A folder of DEFINED_IN
   defines what its parent declares, and has the parent's namespace.
6. No two types or functions of a namespace have the same name in different files: linked into one program, one of them would be used in place of both
   (a violation of the one-definition rule).
7. A folder has at most FOLDER_LIMIT sources beside its tests.
8. A header that defines classes is named after one of its types: they share a word (UNNAMED in layers.py lists exceptions).
9. A pure folder (PURE) includes no header with which it could start a thread, lock, open a socket or a file, or log (PURE_HEADERS).
"""

import re
import sys
from pathlib import Path

from layers import (
    ALLOWED,
    DEFINED_IN,
    FOR_TESTS,
    ONLY_IN,
    PURE,
    PURE_HEADERS,
    SOURCE_FOLDERS,
    TEST_FILE,
    TEST_FOLDERS,
    THIRD_PARTY,
    UNNAMED,
)

TYPE = re.compile(
    r"(?:class|struct|union|enum(?: class)?)\s+(?:\[\[\w+\]\]\s+|[A-Z_]+(?:\([^)]*\))?\s+)?(\w+)\b(?!\s*(?:::|;|\(|<))"
)
# A free function that is declared in a header or defined inline: a type, a name, a parenthesis.
FUNCTION = re.compile(
    r"(?!return\b|using\b|else\b|TEST|namespace\b|template\b|static_assert\b|typedef\b|#|//)(?:[\w:<>,*&\[\]]+ )+[*&]?(\w+)\("
)
# Functions that other code finds by the types of their arguments.
CUSTOMIZATION_POINTS = ("KeepFields", "AbslStringify", "AbslHashValue", "PrintTo", "operator")
FOLDER_LIMIT = 30
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*\{")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def read_sources(root):
    """{path relative to root: text} of all C++ files; generated headers do not appear."""
    files = {}
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc") and path.is_file():
                files[path.relative_to(root).as_posix()] = path.read_text()
    return files


def without_comments(text):
    """Comments and string literals blanked out; line numbers stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|\bR"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: "\n" * m.group().count("\n"), text)


def includes(text):
    """[(line number, quoted path or None, path in angle brackets or None)]"""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match.group(1), match.group(2)))
    return found


def layer_of(path):
    """The entry of ALLOWED that a file belongs to, or None."""
    folder = path.rpartition("/")[0]
    while folder and folder not in ALLOWED:
        folder = folder.rpartition("/")[0]
    return folder or None


def is_test(path):
    return path.split("/")[0] in TEST_FOLDERS or bool(TEST_FILE.search(path))


def may_include(path, target):
    """Whether file `path` may include file `target`: None, or why not."""
    layer, wanted = layer_of(path), layer_of(target)
    if is_test(path):
        # A test stands beside what it tests, and may use the rest of its subsystem and what tests share. A benchmark is a main: it composes.
        if path.split("/")[0] in TEST_FOLDERS or path.endswith("_bench.cc"):
            return None
        if target.startswith(FOR_TESTS) or target.split("/")[0] == path.split("/")[0]:
            return None
    elif is_test(target):
        return "only tests may include this"
    if wanted is None:
        return f"no folder of that name: {target}"
    if layer is None:
        return "this folder is not in ALLOWED (tools/layers.py)"
    if wanted == layer or wanted in ALLOWED[layer] or target in ALLOWED[layer]:
        return None
    return f"{layer} may depend on: {', '.join(ALLOWED[layer]) or 'no other folder'}"


def check_includes(files):
    problems = []
    for path, text in files.items():
        for number, quoted, angled in includes(text):
            if quoted and "/" in quoted and quoted.split("/")[0] in SOURCE_FOLDERS:
                why = may_include(path, quoted)
                if why:
                    problems.append(f'{path}:{number}: includes "{quoted}": {why}')
                continue
            name = angled or quoted
            if layer_of(path) in PURE and not is_test(path) and not PURE_HEADERS.match(name):
                problems.append(f"{path}:{number}: includes {name}, but {layer_of(path)} is pure: see PURE_HEADERS")
            for prefix, folders in THIRD_PARTY.items():
                if (
                    name.startswith(prefix)
                    and not is_test(path)
                    and not path.startswith(tuple(f + "/" for f in folders))
                ):
                    problems.append(f"{path}:{number}: includes {name}, which only {', '.join(folders)} may")
    return problems


def find_cycle(graph):
    """A list of nodes, the first one also last, or None."""
    done, on_path = set(), []

    def visit(node):
        if node in on_path:
            return on_path[on_path.index(node) :] + [node]
        if node in done:
            return None
        on_path.append(node)
        for successor in sorted(graph.get(node, ())):
            cycle = visit(successor)
            if cycle:
                return cycle
        on_path.pop()
        done.add(node)
        return None

    for start in sorted(graph):
        cycle = visit(start)
        if cycle:
            return cycle
    return None


def check_cycles(files):
    by_file, by_folder = {}, {}
    for path, text in files.items():
        targets = {quoted for _, quoted, _ in includes(text) if quoted in files}
        by_file[path] = targets
        if is_test(path):
            continue
        folder = path.rpartition("/")[0]
        by_folder.setdefault(folder, set()).update(t.rpartition("/")[0] for t in targets if not is_test(t))
        by_folder[folder].discard(folder)
    problems = []
    for name, graph in (("files", by_file), ("folders", by_folder)):
        cycle = find_cycle(graph)
        if cycle:
            problems.append(f"{name} include one another in a circle: {' -> '.join(cycle)}")
    return problems


def check_patterns(files):
    problems = []
    for path, text in files.items():
        lines = without_comments(text).splitlines()
        for pattern, (allowed, why, tests_too) in ONLY_IN.items():
            if path in allowed or (is_test(path) and not tests_too):
                continue
            for number, line in enumerate(lines, 1):
                if re.search(pattern, line):
                    problems.append(f"{path}:{number}: {why}")
    return problems


def namespace_of(path):
    """The namespace that a file's folder stands for."""
    folders = [name for name in path.split("/")[:-1] if name != "testing"]
    if "/".join(folders) in DEFINED_IN:
        folders.pop()
    if not folders or folders[0] in ("examples", *TEST_FOLDERS):
        return "hvd"
    return "::".join(["hvd", *(folders[1:] if folders[0] == "base" else folders)])


def check_namespaces(files):
    problems = []
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            opened = NAMESPACE.match(line)
            name = opened.group(1) if opened else ""
            is_own = name.split("::")[0] == "hvd" and not re.match(r".*\{.*\}|namespace \w+ =", line)
            if is_own and name != namespace_of(path) and not declares_only(text.splitlines()[number:]):
                problems.append(
                    f"{path}:{number}: namespace {name} in a folder whose namespace is {namespace_of(path)}"
                )
    return problems


def declares_only(lines):
    """Whether a namespace that begins before these lines has nothing but declarations of types: names of another folder."""
    for line in lines:
        if line.startswith("}"):
            return True
        if line and not re.match(r"(class|struct) \w+;|//", line):
            return False
    return False


def names_of(text):
    """[(line number, name with its namespace)] of the types and functions that a file defines and other files can see; what stands at the line's
    begin is in no class."""
    namespaces, found = [], []
    for number, line in enumerate(text.splitlines(), 1):
        opened, named = NAMESPACE.match(line), TYPE.match(line)
        if opened:
            namespaces.append(opened.group(1))
        elif line.startswith("}") and "// namespace" in line:
            namespaces.pop()
        elif "" not in namespaces and (named or FUNCTION.match(line)):
            name = (named or FUNCTION.match(line)).group(1)
            found.append((number, "::".join([*namespaces, name])))
    return found


def check_names(files):
    homes, problems = {}, []
    for path in sorted(
        files, key=lambda path: path.endswith(".cc")
    ):  # headers first: what a source defines was mostly declared in one
        if path.endswith(".cc") and is_test(path):
            continue  # a separate program
        included = {quoted for _, quoted, _ in includes(files[path])}
        for number, name in names_of(files[path]):
            home = homes.setdefault(name, (path, number))
            if (
                home[0] != path
                and home[0] not in included
                and name.startswith("hvd::")
                and name.rpartition("::")[2] not in CUSTOMIZATION_POINTS
            ):
                problems.append(
                    f"{path}:{number}: {name} is another one in {home[0]}:{home[1]}; a program that holds both would use one of them for both"
                )
    return problems


def words_of(name):
    """The words of a name in either spelling: {"link", "acceptor"} of LinkAcceptor and of link_acceptor."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def shares_a_word(name, other):
    """Whether two names have a word in common, in any form: reduce and Reducer, siphash and SipHash."""
    pairs = [(one, two) for one in words_of(name) for two in words_of(other)]
    same = name.replace("_", "").lower() == other.replace("_", "").lower()
    return same or any(one[:5] == two[:5] or one.rstrip("s") == two.rstrip("s") for one, two in pairs)


def check_titles(files):
    problems = []
    for path, text in files.items():
        if not path.endswith(".h") or is_test(path) or path in UNNAMED:
            continue
        lines = without_comments(text).splitlines()
        types = [TYPE.match(line).group(1) for line in lines if TYPE.match(line)]
        stem = path.rpartition("/")[2][:-2]
        has_class = any(line.startswith("class ") and TYPE.match(line) for line in lines)
        if has_class and not any(shares_a_word(stem, name) for name in types):
            problems.append(f"{path}: none of its types bears its name: {', '.join(types)}")
    return problems


def check_folders(files):
    counts = {}
    for path in files:
        if not is_test(path):
            folder = path.rpartition("/")[0]
            counts[folder] = counts.get(folder, 0) + 1
    return [
        f"{folder}: {count} sources, but at most {FOLDER_LIMIT}"
        for folder, count in counts.items()
        if count > FOLDER_LIMIT
    ]


def check(files):
    """All problems, one line each."""
    return (
        check_includes(files)
        + check_cycles(files)
        + check_patterns(files)
        + check_namespaces(files)
        + check_names(files)
        + check_titles(files)
        + check_folders(files)
    )


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    files = read_sources(root)
    if not files:
        sys.exit(f"no C++ files under {root}")
    problems = check(files)
    print("\n".join(problems + [f"{len(files)} files, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
