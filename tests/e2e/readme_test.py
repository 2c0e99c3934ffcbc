"""The scripts of the pages for new users, run as they are there: README, first steps, migration."""

import re
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PAGES = [
    "README.md",
    "docs/first_steps.md",
    "docs/faq.md",
    *(str(p.relative_to(REPOSITORY)) for p in REPOSITORY.glob("docs/migrating_from_*.md")),
]
# A block is a whole script if it initialises Horovod and elides nothing.
FRAGMENT = re.compile(r"^\s*\.\.\.", re.M)
# By page: what the output of its whole scripts for PyTorch has, in their order.
EXPECTED = {
    "README.md": [r"^\[0\]<stdout>:loss \d+\.\d+ on 2 processes$"],
    "docs/first_steps.md": [
        r"^\[0\]<stdout>:epoch 2: loss 0\.\d+ on 2 processes$",
        r"^\[0\]<stdout>:epoch 3 on 2 processes$",
    ],
    "docs/faq.md": [],
    "docs/migrating_from_horovod.md": [],
    "docs/migrating_from_torchrun.md": [r"^$"],
    "docs/migrating_from_ray_train.md": [],
}


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (REPOSITORY / page).read_text(), re.M | re.S)


def scripts(page):
    """Those of the blocks that run under horovodrun with PyTorch alone."""
    return [
        block
        for block in blocks(page)
        if re.search(r"^hvd\.init\(\)", block, re.M)
        and "horovod.torch" in block
        and "model = " in block
        and not FRAGMENT.search(block)
    ]


RUNS = [(page, index) for page in PAGES for index in range(len(scripts(page)))]


def test_every_whole_script_is_run():
    assert {page: len(scripts(page)) for page in PAGES} == {page: len(patterns) for page, patterns in EXPECTED.items()}


@pytest.mark.parametrize(("page", "index"), RUNS, ids=[f"{page}-{index}" for page, index in RUNS])
def test_script_trains(horovodrun, tmp_path, page, index):
    script = scripts(page)[index]
    (tmp_path / "train.py").write_text(script)
    elastic = ["--min-np", "1"] if "hvd.elastic.run" in script else []
    result = horovodrun.run("-np", "2", *elastic, "python", "train.py", timeout=90)
    assert result.returncode == 0, result.stderr
    assert re.search(EXPECTED[page][index], result.stdout, re.M), result.stdout


def test_function_of_the_questions_returns_its_results(launch, tmp_path):
    [block] = [block for block in blocks("docs/faq.md") if "horovod.run(" in block]
    (tmp_path / "function.py").write_text(block)
    result = launch("python", tmp_path / "function.py")
    assert result.stdout.splitlines()[-1:] == ["[0.0, 0.5]"], result.stderr


def test_readme_is_short_and_keeps_its_lines_short():
    lines = (REPOSITORY / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 160] == []


@pytest.mark.parametrize("image", sorted((REPOSITORY / "docs/images").glob("*.svg")), ids=lambda path: path.name)
def test_image_is_a_drawing_that_a_page_shows(image):
    assert tree.parse(image).getroot().tag.endswith("}svg")
    pages = [REPOSITORY / "README.md", *REPOSITORY.glob("docs/*.md")]
    assert any(f"images/{image.name})" in page.read_text() for page in pages)
