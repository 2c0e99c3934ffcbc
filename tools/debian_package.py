"""Makes the Debian package of a built tree: programs, Python package, and the library and headers for programs that embed the rendezvous server.

It is for the Debian release that it is built on. Other than the wheel it carries no copies of libraries: dpkg-shlibdeps finds out which packages it
depends on. The same input gives the same bytes.

    debian_package.py STAGE OUTPUT_DIRECTORY      STAGE: the package as tools/build lays it out

    /usr/bin                                 links to the programs
    /usr/lib/python3/dist-packages/horovod   the Python package, with the programs in bin/
    /usr/lib/horovod                         libhvd.so, and what frameworks load
    /usr/lib/libhvd_rendezvous.so            with /usr/lib/cmake, /usr/lib/pkgconfig and /usr/include/horovod: as tools/install lays them out
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import wheel

REVISION = "1"
# Debian's variables for who makes a package.
MAINTAINER = f"{os.environ.get('DEBFULLNAME', 'Horovod maintainers')} <{os.environ.get('DEBEMAIL', 'root@localhost')}>"
FIXED_TIME = "1767225600"  # 2026-01-01, for all files and the changelog
PYTHON = "usr/lib/python3/dist-packages"
EMBEDDED = "libhvd_rendezvous.so"

CONTROL = """\
Package: horovod
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: {libraries}, python3 (>= {python}), python3 (<< {next_python}), python3-cloudpickle
Recommends: openssh-client
Suggests: python3-numpy, python3-torch
Section: science
Priority: optional
Description: distributed training with PyTorch, TensorFlow, Keras and JAX
 Launches and runs distributed training: horovodrun starts the processes of a
 job on one or several hosts, a rendezvous daemon forms them into a world, and
 the Python package averages their gradients. Jobs may be elastic: they go on
 when hosts fail, leave or come.
 .
 The package also contains the library and the headers for schedulers in C and
 C++ that embed the rendezvous server.
"""

CHANGELOG = """\
horovod ({version}) stable; urgency=medium

  * Built from the sources of this version.

 -- {maintainer}  Thu, 01 Jan 2026 00:00:00 +0000
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Horovod, rebuilt

Files: *
Copyright: 2026 the authors of Horovod, rebuilt
License: Apache-2.0
 On Debian systems the full text of this license is in
 /usr/share/common-licenses/Apache-2.0.
"""


def link(path, target):
    """Makes `path` a relative link to `target`, both in the same tree."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def lay_out(stage, tree, version):
    """The package's files, as they are to lie under /. Returns the binaries among them."""
    package, libraries = tree / PYTHON / "horovod", tree / "usr/lib/horovod"
    wheel.copy_package(stage, package)
    shutil.rmtree(package / "include", ignore_errors=True)
    shutil.copytree(stage / "include/horovod", tree / "usr/include/horovod")
    (package / "bin").mkdir()
    libraries.mkdir(parents=True)
    binaries = []

    def place(source, target):
        wheel.copy_stripped(source, target)
        binaries.append(target)

    for name in wheel.PROGRAMS:
        place(stage / "bin" / name, package / "bin" / name)
        link(tree / "usr/bin" / name, package / "bin" / name)
    for name in wheel.LIBRARIES:
        target = tree / "usr/lib" / name if name == EMBEDDED else libraries / name
        place(stage / "lib" / name, target)
        if target.parent == libraries:
            target.chmod(0o644)
        link(package / "lib" / name, target)
    wheel.write_build_files(tree / "usr")
    # `python3 -m horovod.rendezvous` names folders of the Python package.
    link(package / "include/horovod", tree / "usr/include/horovod")
    for name in ("cmake", "pkgconfig"):
        link(package / "lib" / name, tree / "usr/lib" / name)
    info = tree / PYTHON / f"horovod-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(wheel.metadata(version))
    (info / "INSTALLER").write_text("debian\n")
    (info / "entry_points.txt").write_text(wheel.entry_points())
    return binaries


def write_documents(tree, version):
    folder = tree / "usr/share/doc/horovod"
    folder.mkdir(parents=True)
    (folder / "copyright").write_text(COPYRIGHT)
    shutil.copyfile(wheel.ROOT / "NOTICE", folder / "NOTICE")
    text = CHANGELOG.format(version=version, maintainer=MAINTAINER)
    (folder / "changelog.Debian.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def libraries_of(binaries):
    """The packages with the libraries that the binaries need, as a list for Depends."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "debian").mkdir()
        (Path(scratch) / "debian/control").write_text("Source: horovod\n\nPackage: horovod\nArchitecture: any\n")
        command = ["dpkg-shlibdeps", "-O", *(f"-e{path}" for path in binaries)]
        said = subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True).stdout
    return said.strip().removeprefix("shlibs:Depends=")


def set_modes(tree):
    """Whatever the umask and the modes in the source tree are."""
    for path in tree.rglob("*"):
        if path.is_symlink():
            continue
        is_program = path.is_dir() or path.parent.name == "bin"
        path.chmod(0o755 if is_program else 0o644)


def write_control(tree, version, binaries):
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    fields = {
        "version": version,
        "architecture": wheel.output_of("dpkg", "--print-architecture").strip(),
        "maintainer": MAINTAINER,
        "size": sum(-(-path.stat().st_size // 1024) for path in files),
        "libraries": libraries_of(binaries),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "next_python": f"{sys.version_info[0]}.{sys.version_info[1] + 1}",
    }
    folder = tree / "DEBIAN"
    folder.mkdir()
    (folder / "control").write_text(CONTROL.format(**fields))
    sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files)
    (folder / "md5sums").write_text("".join(sums))
    # The dynamic linker's cache has libhvd_rendezvous.so; dpkg runs ldconfig for this trigger.
    (folder / "triggers").write_text("activate-noawait ldconfig\n")
    for path in folder.iterdir():
        path.chmod(0o644)


def main(stage, output):
    version = wheel.project_version()
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir(mode=0o755)
        binaries = lay_out(Path(stage) / "horovod", tree, version)
        write_documents(tree, f"{version}-{REVISION}")
        set_modes(tree)
        write_control(tree, f"{version}-{REVISION}", binaries)
        Path(output).mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": FIXED_TIME}
        # One thread: the bytes that xz writes depend on the number of threads.
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", str(tree), str(output)]
        subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
