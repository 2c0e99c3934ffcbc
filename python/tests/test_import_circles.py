"""How the package's modules depend on one another: without circles, and frameworks only where they
belong. Imports within functions count as those at the top do."""

import ast
import pathlib
import textwrap

import pytest

import horovod

PACKAGE = pathlib.Path(horovod.__file__).resolve().parent
FRAMEWORKS = {"numpy", "torch", "tensorflow", "keras", "jax", "mxnet", "pytorch_lightning"}
# What knows no framework.
NEUTRAL = ("_ffi", "common", "elastic", "runner")


def modules_below(folder: pathlib.Path, name: str) -> dict[str, str]:
    """The source of each module by its name."""
    sources = {}
    for path in sorted(folder.rglob("*.py")):
        parts = (name, *path.relative_to(folder).with_suffix("").parts)
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sources[module] = path.read_text()
    return sources


def imported(source: str) -> set[str]:
    """The full names of what a module imports."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names.update(arg.value for arg in node.args if isinstance(arg, ast.Constant))
    return names


def dependencies(sources: dict[str, str]) -> dict[str, set[str]]:
    """Returns the imports between these modules."""
    found = {}
    for module, source in sources.items():
        targets = set()
        for name in imported(source):
            while name and name not in sources:
                name = name.rpartition(".")[0]
            targets.add(name)
        found[module] = targets - {"", module}
    return found


def circles(graph: dict[str, set[str]]) -> list[str]:
    """One circle of imports for each module that closes one."""
    found: list[str] = []
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            found.append(" -> ".join([*path[path.index(module) :], module]))
        elif module not in done:
            for target in sorted(graph[module]):
                visit(target, [*path, module])
            done.add(module)

    for module in sorted(graph):
        visit(module, [])
    return found


def test_no_circles() -> None:
    graph = dependencies(modules_below(PACKAGE, "horovod"))
    assert "horovod.common.basics" in graph["horovod.torch.mpi_ops"]
    assert circles(graph) == []


@pytest.mark.parametrize("folder", NEUTRAL)
def test_no_framework(folder: str) -> None:
    sources = modules_below(PACKAGE / folder, "horovod." + folder)
    assert sources
    for module, source in sources.items():
        roots = {name.partition(".")[0] for name in imported(source)}
        assert not roots & FRAMEWORKS, module


@pytest.mark.parametrize(
    "late",
    ["import a.one", "from a import one", "from a.one import x", "import_module('a.one')"],
)
def test_circles_are_found_wherever_the_import_is(late: str) -> None:
    function = "def f():\n" + textwrap.indent(late, "    ")
    sources = {"a": "", "a.one": "from a.two import f", "a.two": function, "a.three": "import a.one"}
    assert circles(dependencies(sources)) == ["a.one -> a.two -> a.one"]
    sources["a.one"] = "import os"
    assert circles(dependencies(sources)) == []
