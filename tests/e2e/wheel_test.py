"""The wheel, installed into a separate Python environment, contains all that a job needs."""

import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
AUDITWHEEL = REPOSITORY / ".dev/venv-lint/bin/auditwheel"
TRAIN = (
    "import torch, horovod.torch as hvd; hvd.init(); "
    "print('sum', hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist(), hvd.__file__)"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dist")
    stage = os.environ["PYTHONPATH"].split(":")[0]
    subprocess.run(["/usr/bin/python3", REPOSITORY / "tools/wheel.py", stage, directory], check=True)
    (made,) = directory.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment that sees the torch of the one that the tests run in, and Horovod by the wheel only."""
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", venv], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    (site / "tests.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")) + "\n")
    subprocess.run([venv / "bin/pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    return venv


def environment_of(venv):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**environment, "PATH": f"{venv}/bin:/usr/bin:/bin"}


def test_name_and_content(wheel):
    assert re.fullmatch(rf"horovod-\d+\.\d+\.\d+-py3-none-manylinux_2_28_{platform.machine()}\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert not [name for name in names if "__pycache__" in name or re.search(r"/test_|_test\.", name)]
    assert {"horovod/lib/libhvd.so", "horovod/lightning/__init__.py"} <= set(names)
    for program in ("horovodrun", "horovod-agent", "horovod-rendezvousd"):
        assert f"horovod/bin/{program}" in names
        assert f"{program} = " in entry_points
    assert "[torch.backends]\nhvd = horovod._torch_autoload:register\n" in entry_points
    assert "[torchrun.handlers]\nhorovod = horovod.torchrun:get_handler\n" in entry_points


def test_tag_is_what_the_binaries_need(wheel):
    """auditwheel reads which versions of the system's libraries the files ask for; an older system than the tag says would do, too."""
    shown = subprocess.check_output([AUDITWHEEL, "show", wheel], text=True)
    (major, minor), (needed_major, needed_minor) = (
        map(int, re.search(pattern, text).groups())
        for pattern, text in ((r"manylinux_(\d+)_(\d+)_", wheel.name), (r'tag:\s+"manylinux_(\d+)_(\d+)_', shown))
    )
    assert (needed_major, needed_minor) <= (major, minor), shown


def test_same_input_same_bytes(wheel, tmp_path):
    stage = os.environ["PYTHONPATH"].split(":")[0]
    subprocess.run(["/usr/bin/python3", REPOSITORY / "tools/wheel.py", stage, tmp_path], check=True)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_only_the_c_library_and_the_cxx_runtime_come_from_the_system(installed):
    package = next(installed.glob("lib/python*/site-packages/horovod"))
    binaries = [path for path in (*package.glob("bin/*"), *package.glob("lib/*")) if path.is_file()]
    assert len(binaries) > 20
    for binary in binaries:
        for name, path in re.findall(
            r"^\s*(\S+) => (.*?)(?: \(0x\w+\))?$", subprocess.check_output(["ldd", binary], text=True), re.M
        ):
            if not re.match(r"(linux-vdso|lib(c|m|stdc\+\+|gcc_s|pthread|dl|rt|resolv))\.so", name):
                assert os.path.realpath(path).startswith(os.path.realpath(package)), (
                    f"{binary} takes {name} from {path}"
                )


@pytest.mark.parametrize("program", ["horovodrun", "horovod-agent", "horovod-rendezvousd"])
def test_programs_are_on_the_path(installed, program):
    result = subprocess.run(
        [program, "--version"], env=environment_of(installed), capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert re.search(r"\d+\.\d+\.\d+", result.stdout)


def test_examples_are_installed(installed):
    examples = installed / "share/doc/horovod/examples"
    assert (examples / "README.md").exists() and (examples / "ray/digits_on_ray.py").exists()
    command = ["horovodrun", "-np", "2", "python", "numpy_regression.py"]
    result = subprocess.run(
        command, cwd=examples, env=environment_of(installed), capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr


def test_programs_are_built_against_the_wheel(installed, tmp_path):
    """With what `python -m horovod.rendezvous` says, by CMake and by pkg-config."""

    def folder(option):
        return subprocess.check_output(
            ["python", "-m", "horovod.rendezvous", option], env=environment_of(installed), text=True
        ).strip()

    (tmp_path / "program.cpp").write_text(
        "#include <horovod/rendezvous.hpp>\n#include <iostream>\n"
        'int main() { std::cout << horovod::rendezvous::Server({"127.0.0.1:0"}).addresses().at(0) << "\\n"; }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(program CXX)\nfind_package(horovod-rendezvous REQUIRED)\n"
        "add_executable(program program.cpp)\ntarget_link_libraries(program horovod::rendezvous)\n"
    )
    subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path, f"-Dhorovod-rendezvous_DIR={folder('--cmake-dir')}"], check=True
    )
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    flags = subprocess.check_output(
        ["pkg-config", "--cflags", "--libs", "horovod-rendezvous"],
        env={**os.environ, "PKG_CONFIG_PATH": folder("--pkg-config-dir")},
        text=True,
    ).split()
    subprocess.run(["c++", "-std=c++17", tmp_path / "program.cpp", "-o", tmp_path / "second", *flags], check=True)
    for program in ("program", "second"):
        assert re.match(r"127\.0\.0\.1:[1-9]", subprocess.check_output([tmp_path / program], text=True))


def test_training_with_the_wheel_alone(installed):
    result = subprocess.run(
        ["horovodrun", "-np", "2", "python", "-c", TRAIN], env=environment_of(installed), capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert len(re.findall(rf"sum \[2\.0, 2\.0, 2\.0\] {re.escape(str(installed))}", result.stdout)) == 2, result.stdout
