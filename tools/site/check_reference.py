"""check_reference.py SITE: fails if a public name of a module, or a function of a public header, has no entry or no description in the reference."""

import re
import sys
from pathlib import Path

import griffe
import headers
from lay_out import MODULES, ROOT


def names_of(part: str | griffe.Expr, package: griffe.Module) -> list[str]:
    """A name of an __all__, or those of another module's that is a part of it."""
    if isinstance(part, str):
        return [part]
    return public_names(package[part.canonical_path.removeprefix("horovod.").removesuffix(".__all__")], package)


def public_names(module: griffe.Module, package: griffe.Module) -> list[str]:
    if module.exports is not None:
        return [name for part in module.exports for name in names_of(part, package)]
    return [name for name, member in module.members.items() if not name.startswith("_") and not member.is_alias]


def has_anothers(module: griffe.Module, name: str) -> bool:
    """Whether it is given the docstring of another object, which then is on the page, too."""
    member = module.members[name]
    return "__doc__" in member.members or f"{name}.__doc__ = " in module.source


def missing(site: Path) -> list[str]:
    package = griffe.load("horovod", search_paths=[ROOT / "python"], resolve_aliases=True)
    problems = []
    for path in MODULES:
        module = package[path.removeprefix("horovod.")]
        anchors = set(re.findall(r'id="(horovod[^"]*)"', (site / "reference" / f"{path}.html").read_text()))
        for name in public_names(module, package):
            member = module.members.get(name)
            if member is None or member.is_module:  # of those there are pages, or the module makes it at run time
                continue
            if f"{path}.{name}" not in anchors:
                problems.append(f"{path}.{name} has no entry")
            elif not member.is_attribute and member.docstring is None and not has_anothers(module, name):
                problems.append(f"{path}.{name} has no docstring")
    return problems


def missing_of_headers(site: Path) -> list[str]:
    problems = headers.problems()
    for page, anchors in headers.anchors().items():
        there = set(re.findall(r'id="([^"]*)"', (site / "reference" / f"{page}.html").read_text()))
        problems += [f"{page}: {anchor} has no entry" for anchor in anchors if anchor not in there]
    return problems


if __name__ == "__main__":
    found = missing(Path(sys.argv[1])) + missing_of_headers(Path(sys.argv[1]))
    print("".join(f"check_reference: {problem}\n" for problem in found), end="", file=sys.stderr)
    sys.exit(1 if found else 0)
