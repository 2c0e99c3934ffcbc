"""The docstrings of the public interface: each public name has one, it documents each parameter, and its examples run.

The public modules are those of the reference (tools/site/lay_out.py) and the few that scripts import by name. Modules
whose framework is not installed are skipped, so each environment checks its own.
"""

import ast
import doctest
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from horovod.common import basics

LAY_OUT = Path(__file__).resolve().parents[2] / "tools" / "site" / "lay_out.py"
ALSO_PUBLIC = (
    "horovod",
    "horovod.common.exceptions",
    "horovod.common.process_sets",
    "horovod.common.util",
    "horovod.elastic.loop",
    "horovod.elastic.sampler",
    "horovod.elastic.state",
    "horovod.lightning",
    "horovod.numpy.elastic",
    "horovod.ray.elastic",
    "horovod.ray.ray_logger",
    "horovod.ray.train",
    "horovod.runner.common.util.config_parser",
    "horovod.runner.common.util.hosts",
    "horovod.runner.common.util.safe_shell_exec",
    "horovod.runner.launch",
    "horovod.spark.common.backend",
    "horovod.spark.common.estimator",
    "horovod.spark.common.params",
    "horovod.spark.common.store",
    "horovod.spark.keras",
    "horovod.spark.lightning",
    "horovod.spark.torch",
    "horovod.tensorflow.keras",
    "horovod.torch.mpi_ops",
)
# Parameters that pass on whatever another function takes: `*args`, `**kwargs`.
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def public_modules() -> list[str]:
    """The names of the public modules. lay_out.py is only read: it belongs to a tool, not to a package."""
    for node in ast.parse(LAY_OUT.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MODULES":
            return sorted({*ast.literal_eval(node.value), *ALSO_PUBLIC})
    raise AssertionError(f"{LAY_OUT} has no MODULES")


def is_ours(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").partition(".")[0] == "horovod"


def public_names(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """What the module exports: `__all__`, or else what it or its submodules define, without an underscore."""
    exported = getattr(module, "__all__", None)
    for name in exported or [name for name in vars(module) if not name.startswith("_")]:
        value = getattr(module, name)
        if is_ours(value) and callable(value) and (exported or value.__module__.startswith(module.__name__)):
            yield name, value


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that the class itself, or a private base class of this package, defines."""
    for base in cls.__mro__:
        if base is cls or (is_ours(base) and base.__name__.startswith("_")):
            for name, value in vars(base).items():
                if not name.startswith("_") and isinstance(
                    value, (types.FunctionType, property, classmethod, staticmethod)
                ):
                    yield name, getattr(cls, name)


def everything(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """All that needs a docstring, by the name that users know it by."""
    for name, value in public_names(module):
        path = f"{module.__name__}.{name}"
        if inspect.isclass(value):
            yield path, value
            for member, inner in members(value):
                yield f"{path}.{member}", inner
        elif inspect.isroutine(value):
            yield path, value


def docstring(value: Any) -> str:
    return inspect.getdoc(value) or ""


def parameters(value: Any) -> list[str]:
    """The parameters that the docstring has to explain; a method that only overrides another has none."""
    if inspect.isclass(value):
        init = vars(value).get("__init__")
        if not isinstance(init, types.FunctionType) or not is_ours(init):
            return []
        signature = inspect.signature(init)
    elif isinstance(value, property) or not value.__doc__:
        return []
    else:
        signature = inspect.signature(value)
    return [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind not in VARIADIC and name not in ("self", "cls") and not name.startswith("_")
    ]


def documented(doc: str) -> set[str]:
    """The parameters that a docstring explains: its entries under `Args:` or `Attributes:`, and names in backquotes."""
    found = set(re.findall(r"`(\w+)`", doc))
    for section in re.findall(r"^(?:Args|Attributes):\n((?:[ ]+.*\n?|\n)*)", doc, re.MULTILINE):
        # An entry is `name: meaning`, or `name, name: meaning`, which may go over several lines.
        for entry in re.findall(r"^[ ]+((?:\w+,\s+)*\w+):", section, re.MULTILINE):
            found.update(re.split(r",\s+", entry))
    return found


def undocumented(value: Any) -> list[str]:
    doc = docstring(value)
    if inspect.isclass(value):
        doc += "\n" + (value.__init__.__doc__ or "")
    return [name for name in parameters(value) if name not in documented(doc)]


def load(name: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name}: {error}")


@pytest.mark.parametrize("name", public_modules())
def test_every_public_name_has_a_docstring(name: str) -> None:
    module = load(name)
    assert module.__doc__, f"{name} has no docstring"
    assert [path for path, value in everything(module) if not docstring(value)] == []


@pytest.mark.parametrize("name", public_modules())
def test_every_parameter_is_documented(name: str) -> None:
    missing = {path: undocumented(value) for path, value in everything(load(name))}
    assert {path: names for path, names in missing.items() if names} == {}


@pytest.mark.parametrize("name", public_modules())
def test_examples(name: str, capsys: Any) -> None:
    """Runs the doctests in a world of one process. `hvd` is the module in whose documentation the example stands."""
    assert basics.size() == 1
    module = load(name)
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed = []
    for path, value in [(name, module), *everything(module)]:
        examples = parser.get_doctest(docstring(value), {"hvd": module}, path, None, None)
        if examples.examples and runner.run(examples).failed:
            failed.append(path)
    assert not failed, capsys.readouterr().out


def test_entries_of_several_names() -> None:
    doc = "Does it.\n\nArgs:\n  one, two,\n    three: numbers.\n  four: of `five`.\n\nReturns:\n  six: not one.\n"
    assert documented(doc) == {"one", "two", "three", "four", "five"}


def test_gaps_are_found() -> None:
    def bare(one: int) -> None: ...

    def half(one: int, two: int) -> None:
        """Adds.

        Args:
          one: a number.
        """

    assert docstring(bare) == ""
    assert undocumented(half) == ["two"]
