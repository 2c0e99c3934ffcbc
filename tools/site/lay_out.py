"""lay_out.py FOLDER: the pages of the site, below FOLDER, each where it lies in the repository, so that links hold.

Pictures are copied, and flowcharts are drawn (drawings.py). A link to a source file becomes a link to a page that shows it, or to its reference. A
link to a folder becomes a link to its README, or to a page that shows its files. The line <!-- file: NAME --> becomes the text of that file. Modules
get pages of their reference, which mkdocstrings fills in. So do public headers (headers.py)."""

import os
import re
import shutil
import sys
from pathlib import Path

import drawings
import headers

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/*.md",
    "docs/design/*.md",
    "examples/**/README.md",
    "tools/bench/RESULTS.md",
]
# Each with what it is for.
MODULES = {
    "horovod.torch": "PyTorch",
    "horovod.torch.elastic": "Elastic jobs with PyTorch",
    "horovod.tensorflow": "TensorFlow",
    "horovod.tensorflow.elastic": "Elastic jobs with TensorFlow",
    "horovod.keras": "Keras",
    "horovod.keras.callbacks": "Keras' callbacks",
    "horovod.keras.elastic": "Elastic jobs with Keras",
    "horovod.jax": "JAX",
    "horovod.jax.elastic": "Elastic jobs with JAX",
    "horovod.mxnet": "MXNet",
    "horovod.numpy": "NumPy",
    "horovod.numpy.elastic": "Elastic jobs with NumPy",
    "horovod.lightning": "PyTorch Lightning",
    "horovod.runner": "Functions on several ranks: `horovod.run`",
    "horovod.spark": "Spark",
    "horovod.ray": "Ray",
    "horovod.dask": "Dask",
    "horovod.data": "Data loaders",
    "horovod.rendezvous": "Rendezvous for schedulers",
}
# What else is on a module's page: its docstrings are those of the module's own names.
MORE = {
    "horovod.torch.elastic": ["horovod.elastic.sampler.ElasticSampler"],
    "horovod.keras": ["horovod._keras.interface.DistributedOptimizer", "horovod._keras.interface.Functions"],
}
# Sources whose pages are those of the reference.
IN_REFERENCE = {
    headers.C_HEADER: "c_api.md",
    headers.CPP_HEADER: "cpp_api.md",
    ROOT / "python" / "horovod" / "rendezvous" / "__init__.py": "horovod.rendezvous.md",
}
LANGUAGES = {".py": "python", ".sh": "bash", ".yaml": "yaml", ".h": "cpp", ".cc": "cpp", ".c": "c", ".sbatch": "bash"}
FILE = re.compile(r"^<!-- file: (\S+) -->\n", re.M)
LINK = re.compile(r"(\[[^\]]*\]\()([^)#\s]+)(#[^)\s]*)?(\))")


def lay_out(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for page in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        write(folder / page.relative_to(ROOT), with_links(page, folder))
    write(folder / "reference" / "index.md", reference(folder))
    shutil.copy(Path(__file__).with_name("site.css"), folder)


def with_links(page: Path, folder: Path) -> str:
    """The page, its links to files and folders changed to their pages, which are made."""

    def change(link: re.Match[str]) -> str:
        before, target, anchor, after = link.group(1), link.group(2), link.group(3) or "", link.group(4)
        path = (page.parent / target).resolve()
        if path in IN_REFERENCE:
            here = (folder / page.relative_to(ROOT)).parent
            return f"{before}{os.path.relpath(folder / 'reference' / IN_REFERENCE[path], here)}{anchor}{after}"
        if "://" in target or target.endswith(".md") or not path.exists():
            return link.group(0)
        if path.suffix == ".svg":
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
            return link.group(0)
        if path.is_dir():
            if not (path / "README.md").exists():
                write(folder / path.relative_to(ROOT) / "README.md", folder_page(path))
            return f"{before}{target.rstrip('/')}/README.md{anchor}{after}"
        write(folder / path.relative_to(ROOT).with_name(path.name + ".md"), source_page(path))
        return f"{before}{target}.md{anchor}{after}"

    try:
        drawn = drawings.with_drawings(page.read_text())
    except ValueError as error:
        sys.exit(f"{page.relative_to(ROOT)}: {error}")
    changed = LINK.sub(change, drawn)
    return FILE.sub(lambda line: code(page.parent / line.group(1)), changed)  # last: the file's text has no links


def source_page(path: Path) -> str:
    return f"# {path.relative_to(ROOT)}\n\n{code(path)}"


def folder_page(path: Path) -> str:
    """All files of a folder that has no README."""
    parts = [f"## {each.name}\n\n{code(each)}" for each in sorted(path.iterdir()) if each.is_file()]
    return "\n".join([f"# {path.relative_to(ROOT)}\n", *parts])


def code(path: Path) -> str:
    fence = "`" * 4
    return f"{fence}{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}{fence}\n"


def reference(folder: Path) -> str:
    """Writes a page for each module and each public header; returns their table of contents."""
    lines = ["# Reference", "", "| module or header | for |", "|---|---|"]
    for module, title in MODULES.items():
        objects = "".join(f"::: {name}\n\n" for name in [module, *MORE.get(module, [])])
        write(folder / "reference" / f"{module}.md", f"# {module}\n\n{title}.\n\n{objects}")
        lines.append(f"| [`{module}`]({module}.md) | {title} |")
    for name, text in headers.pages().items():
        write(folder / "reference" / name, text)
    lines.append("| [`horovod/rendezvous.h`](c_api.md) | Rendezvous for schedulers, in C |")
    lines.append("| [`horovod/rendezvous.hpp`](cpp_api.md) | Rendezvous for schedulers, in C++ |")
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
