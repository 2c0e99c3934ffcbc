"""Installs libhvd_rendezvous.so, its headers and what it needs into a folder; tools/install says more.

libhvd.so and the shared libraries under it lie in PREFIX/lib/horovod under names with a hash (wheel.py says why), so no other program takes them.

    install_library.py STAGE PREFIX      STAGE: the package as tools/build lays it out
"""

import shutil
import sys
import tempfile
from pathlib import Path

import wheel

LICENSES = "share/doc/horovod-rendezvous"
# Whole folders: what is in them and not in the new ones goes.
OURS = ("include/horovod", "lib/horovod", "lib/cmake/horovod-rendezvous", LICENSES)


def make_tree(stage, tree):
    """The files as they are to lie under PREFIX."""
    shutil.copytree(stage / "include/horovod", tree / "include/horovod")
    core = tree / "lib/horovod/libhvd.so"
    core.parent.mkdir(parents=True)
    libraries = wheel.bundle([(stage / "lib/libhvd.so", core, "$ORIGIN")], core.parent)
    wheel.copy_stripped(stage / "lib/libhvd_rendezvous.so", tree / "lib/libhvd_rendezvous.so")
    wheel.write_build_files(tree)
    wheel.write_licenses(libraries, tree / LICENSES)
    for header in (tree / "include/horovod").iterdir():
        header.chmod(0o644)


def place(tree, prefix):
    """Makes PREFIX so. A running program keeps its file: a new one takes its name."""
    wanted = {path.relative_to(tree) for path in tree.rglob("*") if path.is_file()}
    changed = 0
    for name in sorted(wanted):
        source, target = tree / name, prefix / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(target.name + ".new")
        shutil.copy2(source, partial)
        partial.replace(target)
        changed += 1
    for folder in OURS:
        for path in (prefix / folder).rglob("*"):
            if path.is_file() and path.relative_to(prefix) not in wanted:
                path.unlink()
                changed += 1
    return changed


def main(stage, prefix):
    with tempfile.TemporaryDirectory() as scratch:
        make_tree(Path(stage), Path(scratch))
        changed = place(Path(scratch), Path(prefix))
    print(f"{prefix}: {f'{changed} files changed' if changed else 'nothing to do'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
