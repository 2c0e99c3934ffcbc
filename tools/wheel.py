"""Makes the wheel of a built tree: the Python package, the programs, libhvd.so and every shared library that they need.

The wheel runs on any Linux with glibc 2.28 or later on the processor that it was built on, under any Python >= 3.9 and beside any torch:

* Bundled libraries get names with a hash of their content, and a search path relative to themselves, so that they can't be taken for (or be replaced
  by) another library of that name in the process or on the machine.
* Left to the system: glibc, and libstdc++ with libgcc_s. A process must have one C++ runtime, and that one is the one that torch uses too.
* The files are linked on Debian 12, and so ask for newer versions of these libraries than an older system has. tools/symbol_versions.py removes these
  versions; tools/old_systems.cc defines the functions that an older system lacks.
* The same input gives the same bytes: fixed order, times and modes.

Called by Bazel for //:wheel:  wheel.py STAGE OUTPUT_DIRECTORY
"""

import base64
import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import symbol_versions
import tomllib

ROOT = Path(__file__).absolute().parent.parent  # Bazel's sandbox, where it is a link
TAG = "py3-none-manylinux_{}_{}_{}".format(*symbol_versions.NEWEST["GLIBC"], platform.machine())
PROGRAMS = ("horovodrun", "horovod-agent", "horovod-rendezvousd")
OLD_SYSTEMS = "libhvd_old_systems.so"
LIBRARIES = ("libhvd.so", "libhvd_jax.so", "libhvd_rendezvous.so", "libhvd_tensorflow.so")
# Of examples/, what runs with an installed package.
EXAMPLES = ("README.md", "*.py", "dask/*.py", "ray/*.py", "spark/*.py")
FIXED_TIME = (1980, 1, 1, 0, 0, 0)

# What the library of tools/old_systems.cc exports, as patterns for the linker.
EXPORTED = (
    *("__libc_single_threaded", "gettid", "hvd_start_program", "pthread_cond_clockwait", "sigabbrev_np"),
    *("fstat", "fstat64", "fstatat", "lstat", "stat"),
    "_ZNSt10filesystem*",
    "_ZNKSt10filesystem*",
    "_ZTINSt10filesystem*",
    "_ZSt28__throw_bad_array_new_lengthv",
    "_ZNSt13runtime_errorC?EOS_",
    "_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv",
    "_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv",
    "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7reserveEv",
    "_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev",
    "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev",
)
FILESYSTEM = ("fs_dir.o", "fs_ops.o", "fs_path.o")  # std::filesystem in the static libstdc++

# Of glibc, the C++ runtime and the kernel.
SYSTEM_LIBRARY = re.compile(
    r"(linux-vdso|ld-linux-(x86-64|aarch64)|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|stdc\+\+|gcc_s))\.so(\.\d+)*$"
)


def project():
    """The [project] table of pyproject.toml."""
    return tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]


def metadata(version):
    """The wheel's METADATA: what pip and package indexes read. README.md is its body, which they show as the description."""
    said = project()
    extras = sorted(said["optional-dependencies"].items())
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {said['name']}",
        f"Version: {version}",
        f"Summary: {said['description']}",
        f"License: {said['license']['text']}",
        *(f"Classifier: {name}" for name in said["classifiers"]),
        f"Requires-Python: {said['requires-python']}",
        *(f"Requires-Dist: {name}" for name in said["dependencies"]),
        *(f"Provides-Extra: {extra}" for extra, _ in extras),
        *(f'Requires-Dist: {name}; extra == "{extra}"' for extra, names in extras for name in names),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (ROOT / "README.md").read_text()


def entry_points():
    groups = {"console_scripts": project()["scripts"], **project()["entry-points"]}
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in groups.items()
    )


def project_version():
    text = (ROOT / "base/version.h").read_text()
    return re.search(r'kVersion\[\] = "([^"]+)"', text).group(1)


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def needed_libraries(binary):
    """Path by soname of all that the dynamic linker would load for `binary`, the system's own apart."""
    found = {}
    for line in output_of("ldd", str(binary)).splitlines():
        match = re.match(r"\s*(\S+) => (.*?)( \(0x[0-9a-f]+\))?$", line)
        if not match or SYSTEM_LIBRARY.match(match.group(1)):
            continue
        soname, path = match.group(1), match.group(2)
        if not path.startswith("/"):
            raise SystemExit(f"{binary} needs {soname}, which is not installed")
        found[soname] = Path(path).resolve()
    return found


def write_build_files(prefix):
    """For programs that are built against libhvd_rendezvous.so, with pkg-config and CMake. They find all from where they are."""
    version = project_version()
    for name, folder in (
        ("horovod-rendezvous.pc", "pkgconfig"),
        ("horovod-rendezvous-config.cmake", "cmake/horovod-rendezvous"),
        ("horovod-rendezvous-config-version.cmake", "cmake/horovod-rendezvous"),
    ):
        text = (ROOT / "rendezvous/c_api/install" / name).read_text()
        text = text.replace("@VERSION@", version).replace("@MAJOR@", version.split(".")[0])
        target = prefix / "lib" / folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def direct_needs(binary):
    return output_of("patchelf", "--print-needed", str(binary)).split()


def static_libstdcxx():
    return Path(output_of("g++", "-print-file-name=libstdc++.a").strip()).resolve()


def build_for_old_systems(folder):
    """Builds the library of tools/old_systems.cc into `folder`, with a hash in its name."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        subprocess.run(["ar", "x", str(static_libstdcxx()), *FILESYSTEM], cwd=scratch, check=True)
        (scratch / "exported").write_text("{ global: " + "".join(f"{name}; " for name in EXPORTED) + "local: *; };\n")
        built = scratch / OLD_SYSTEMS
        sources = [str(ROOT / "tools/old_systems.cc"), *(str(scratch / name) for name in FILESYSTEM)]
        link = [f"-Wl,--version-script={scratch / 'exported'},-Bsymbolic,--build-id=none", "-o", str(built)]
        subprocess.run(["g++", "-std=c++17", "-O2", "-fPIC", "-shared", "-s", *sources, *link], check=True)
        target = folder / hashed_name(OLD_SYSTEMS, built)
        shutil.copyfile(built, target)
    target.chmod(0o755)
    subprocess.run(["patchelf", "--set-soname", target.name, str(target)], check=True)
    return target


def run_on_old_systems(binaries, helper):
    """Makes the files, `helper` of build_for_old_systems() among them, ask for no newer libraries than an old system has."""
    available = symbol_versions.defined(helper)
    for binary in [*binaries, helper]:
        wanted = symbol_versions.too_new(binary)
        needed = {symbol_versions.old_home(name) for name in wanted} - {None, *direct_needs(binary)}
        for name in sorted(needed):
            subprocess.run(["patchelf", "--add-needed", name, str(binary)], check=True)
        # The last library: what the system defines is taken from the system. Otherwise the system's libstdc++ would call functions of `helper`, which
        # call it in turn.
        if wanted.keys() & {*available, *symbol_versions.RENAMED}:
            subprocess.run(["patchelf", "--add-needed", helper.name, str(binary)], check=True)
            symbol_versions.need_last(binary, helper.name)
            if direct_needs(binary)[-1] != helper.name:
                raise SystemExit(f"{helper.name} is not the last library that {binary} needs")
        symbol_versions.lower(binary, available)


def copy_stripped(source, target):
    shutil.copyfile(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


def hashed_name(soname, path):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    stem, _, rest = soname.partition(".so")
    return f"{stem}-{digest}.so{rest}"


def bundle_binaries(stage, package):
    """Copies programs, libhvd.so and their libraries under package/{bin,lib} and ties them together."""
    (package / "bin").mkdir()
    (package / "lib").mkdir()
    ours = [("bin/" + name, "$ORIGIN/../lib") for name in PROGRAMS] + [("lib/" + name, "$ORIGIN") for name in LIBRARIES]
    return bundle([(stage / name, package / name, path) for name, path in ours], package / "lib")


def bundle(binaries, folder):
    """Copies binaries, each (source, target, search path), and the libraries that they need into `folder`. Returns where these came from."""
    libraries = {}
    for source, target, _ in binaries:
        libraries.update(needed_libraries(source))
        copy_stripped(source, target)
    new_names = {soname: hashed_name(soname, path) for soname, path in libraries.items()}
    paths = {target: search_path for _, target, search_path in binaries}
    for soname, path in sorted(libraries.items()):
        target = folder / new_names[soname]
        copy_stripped(path, target)
        subprocess.run(["patchelf", "--set-soname", target.name, str(target)], check=True)
        paths[target] = "$ORIGIN"
    for binary, search_path in paths.items():
        tie(binary, new_names, search_path)
    run_on_old_systems(paths, build_for_old_systems(folder))
    return sorted([*libraries.values(), static_libstdcxx()])


def tie(binary, new_names, search_path):
    """Makes a binary look for the bundled libraries, in `search_path`. One change a call: this patchelf drops some of several."""
    for soname in direct_needs(binary):
        if soname in new_names:
            subprocess.run(["patchelf", "--replace-needed", soname, new_names[soname], str(binary)], check=True)
    subprocess.run(["patchelf", "--set-rpath", search_path, str(binary)], check=True)
    left = [soname for soname in direct_needs(binary) if soname in new_names]
    if left:
        raise SystemExit(f"patchelf left {left} in {binary}")


def copy_package(stage, package):
    """The Python files, tests apart, with the version of the programs."""
    ignore = shutil.ignore_patterns(
        "__pycache__", "*.pyc", "*_test.py", "test_*.py", "tests", "conftest.py", "BUILD.bazel", "bin", "lib"
    )
    shutil.copytree(stage, package, ignore=ignore)
    text = f'"""The version of this package: that of base/version.h."""\n\n__version__ = "{project_version()}"\n'
    (package / "version.py").write_text(text)


def copy_examples(target):
    for pattern in EXAMPLES:
        for path in (ROOT / "examples").glob(pattern):
            copy = target / path.relative_to(ROOT / "examples")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def write_licenses(libraries, directory):
    """Ours, and what Debian's packages say of the libraries that the wheel carries."""
    directory.mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", directory / "LICENSE")
    for name in sorted({debian_package(path) for path in libraries}):
        shutil.copyfile(f"/usr/share/doc/{name}/copyright", directory / f"{name}.txt")


def debian_package(path):
    """Some packages still list their files under /lib, which is a link to /usr/lib."""
    for listed in (str(path), str(path).replace("/usr/lib/", "/lib/", 1)):
        found = subprocess.run(
            ["dpkg-query", "-S", listed], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise SystemExit(f"no Debian package owns {path}: what is its license?")


def write_zip(tree, wheel, record_name):
    """RECORD, the list of all files with their hashes, comes last."""
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, data, mode):
            info = zipfile.ZipInfo(name, FIXED_TIME)
            info.external_attr = (stat.S_IFREG | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)

        for path in sorted(p for p in tree.rglob("*") if p.is_file()):
            data = path.read_bytes()
            name = path.relative_to(tree).as_posix()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, 0o755 if os.access(path, os.X_OK) else 0o644)
        record.append(f"{record_name},,\n")
        add(record_name, "".join(record), 0o644)


def main(stage, output):
    version = project_version()
    stage, output = Path(stage), Path(output)
    wheel = output / f"horovod-{version}-{TAG}.whl"
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        copy_package(stage / "horovod", tree / "horovod")
        libraries = bundle_binaries(stage / "horovod", tree / "horovod")
        write_build_files(tree / "horovod")
        # pip installs what is in "data" below sys.prefix.
        copy_examples(tree / f"horovod-{version}.data/data/share/doc/horovod/examples")
        info = tree / f"horovod-{version}.dist-info"
        write_licenses(libraries, info / "licenses")
        (info / "METADATA").write_text(metadata(version))
        (info / "WHEEL").write_text(
            f"Wheel-Version: 1.0\nGenerator: tools/wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n"
        )
        (info / "entry_points.txt").write_text(entry_points())
        output.mkdir(exist_ok=True)
        partial = wheel.with_suffix(".partial")
        write_zip(tree, partial, f"{info.name}/RECORD")
        partial.replace(wheel)
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB, {len(libraries)} libraries inside)")


if __name__ == "__main__":
    main(*sys.argv[1:])
