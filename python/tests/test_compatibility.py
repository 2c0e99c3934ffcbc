"""docs/compatibility.md is complete: nothing blank, every test named is there, every name exported
has an entry. So are the tests of past faults. Runs in one process."""

import pathlib
import re

import pytest

import horovod.torch as hvd

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
CASES = HERE / "data" / "horovods_cases.md"
PAST_FAULTS = ROOT / "docs" / "design" / "past_faults.md"
SCENARIOS = ROOT / "tests" / "simulation" / "testdata"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the package's tests stand alone")


# An entry of the page: a bold name, what it is here, and its tests, each from the beginning of a line.
ENTRY = re.compile(r"^- \*\*.*\n(?:  .*\n)*", re.M)


def entries():
    """Yields (name, description, tests) of each entry."""
    for entry in ENTRY.findall(PAGE.read_text(encoding="utf-8")):
        name, _, rest = entry.removeprefix("- **").partition("**\n")
        here, _, tests = rest.partition("  Tests: ")
        yield [" ".join(part.split()) for part in (name, here, tests)]


def rows(table):
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not set(line) <= set("|-: "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def is_there(reference):
    file, _, name = reference.partition("::")
    path = ROOT / file if "/" in file else HERE / file
    if not path.exists() or not name:
        return path.exists()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return re.search(rf"^def {re.escape(name)}\(", text, re.M) is not None
    suite, _, case = name.partition(".")
    pattern = rf"^TEST(_F|_P)?\(\s*{re.escape(suite)},\s*{re.escape(case)}\)"
    return re.search(pattern, text, re.M) is not None


def test_nothing_is_blank():
    found = list(entries())
    assert len(found) > 150
    assert [entry for entry in found if not all(entry)] == []
    assert PAGE.read_text(encoding="utf-8").count("  Tests: ") == len(found), "something looks like no entry"


def test_every_test_is_there():
    references = [re.findall("`([^`]+)`", tests) for _, _, tests in entries()]
    assert all(references)
    missing = {each for tests in references for each in tests if not is_there(each)}
    assert sorted(missing) == []


def test_every_case_of_horovods_has_a_test_or_a_reason():
    cases = [row for row in rows(CASES) if row[0] != "Horovod's case"]
    for part in CASES.read_text(encoding="utf-8").split("\n## ")[1:]:
        firsts = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
        names = [name for first in firsts for name in re.findall("`([^`]+)`", first)]
        assert len(names) == len(set(names)), part.splitlines()[0]
    assert [row for row in cases if len(row) != 3 or not (row[1] or row[2])] == []
    tests = {each for row in cases for each in re.findall("`([^`]+)`", row[1])}
    assert sorted(each for each in tests if not is_there(each)) == []


def test_every_past_fault_has_a_test_that_is_there():
    faults = [row for row in rows(PAST_FAULTS) if row[0] != "fault"]
    tests = {fault: re.findall("`([^`]+)`", held_by) for fault, held_by in faults}
    assert len(tests) == len(faults) > 100
    assert sorted(fault for fault, those in tests.items() if not those) == []
    missing = {
        each for those in tests.values() for each in those if not (SCENARIOS / each).exists() and not is_there(each)
    }
    assert sorted(missing) == []


def test_every_name_has_an_entry():
    named = set(re.findall(r"\w+", " ".join(name for name, _, _ in entries())))
    assert [name for name in hvd.__all__ if name not in named and not is_module(name)] == []


def anchors(page):
    """Returns the anchors of the headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_of_the_docs_lead_somewhere():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]
    links = [
        (page, link) for page in pages for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 20
    for page, link in links:
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists() and (not anchor or anchor in anchors(target)), (page, link)


def is_module(name):
    return isinstance(getattr(hvd, name), type(re)) and name != "elastic"
