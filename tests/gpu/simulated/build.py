"""Compiles the simulated GPU, with the headers of the torch that runs this: libcuda.so.1, libnccl.so.2 and an extension of torch, in a
folder of .dev/simulated-gpu/ whose name tells the sources and torch's version. What is there already is not compiled again, nor is a source
that is as before, with all headers.

    python tests/gpu/simulated/build.py     prints the variables of a job that has the GPU, as NAME=VALUE lines
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
KEPT = ROOT / ".dev" / "simulated-gpu"
FLAGS = ["-fPIC", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-pthread", f"-I{ROOT}"]
ENTRY_POINT = "[torch.backends]\nsimulated_gpu = simulated_gpu:load\n"


def torch_folder():
    folder = Path(importlib.util.find_spec("torch").origin).parent
    assert (folder / "include/ATen/ATen.h").exists(), "this torch comes without headers: tools/setup --torch pip"
    return folder


def digest_of(files, *texts):
    digest = hashlib.sha256(importlib.metadata.version("torch").encode())
    for text in texts:
        digest.update(f"{text}\0".encode())
    for file in sorted(files):
        digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()[:20]


def headers():
    return [*HERE.rglob("*.h"), ROOT / "collectives/nccl/abi.h"]


def name():
    return digest_of([*headers(), *HERE.rglob("*.cc"), *HERE.glob("simulated_gpu/*.py"), HERE / "build.py"])


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stderr}"


def compile_source(source, flags):
    """Returns the object."""
    done = KEPT / "objects" / f"{source.stem}-{digest_of([*headers(), source], *flags)}.o"
    if not done.exists():
        done.parent.mkdir(exist_ok=True)
        unfinished = done.with_suffix(f".{os.getpid()}")
        run(["g++", *flags, "-c", source, "-o", unfinished])
        unfinished.rename(done)
    return done


def compile_library(folder, part, library, flags, link):
    """Compiles the sources of HERE/part, side by side, and links them."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compile_source(source, [*FLAGS, *flags]), (HERE / part).glob("*.cc")))
    run(["g++", "-shared", "-pthread", *objects, "-o", folder / library, *link])


def compile_all(folder):
    torch = torch_folder()
    lib, site = folder / "lib", folder / "site"
    lib.mkdir(parents=True)
    driver = [f"-L{lib}", "-l:libcuda.so.1", "-Wl,-rpath,$ORIGIN"]
    compile_library(lib, "driver", "libcuda.so.1", ["-std=c++17", "-O1"], ["-Wl,-soname,libcuda.so.1"])
    compile_library(lib, "nccl", "libnccl.so.2", ["-std=c++17", "-O2"], ["-Wl,-soname,libnccl.so.2", *driver])
    # Without optimisation: the time goes into torch's own kernels.
    flags = ["-std=c++20", "-O0", "-isystem", torch / "include"]
    compile_library(lib, "extension", "libsimulated_gpu.so", flags, [f"-L{torch}/lib", "-lc10", "-ltorch_cpu", *driver])
    shutil.copytree(HERE / "simulated_gpu", site / "simulated_gpu", ignore=shutil.ignore_patterns("__pycache__"))
    information = site / "simulated_gpu-1.dist-info"
    information.mkdir()
    (information / "entry_points.txt").write_text(ENTRY_POINT)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: simulated_gpu\nVersion: 1\n")
    (folder / "state").mkdir()


def build():
    """Returns the folder, compiled if need be."""
    folder = KEPT / name()
    if folder.exists():
        return folder
    KEPT.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=KEPT, prefix="unfinished-"))
    try:
        compile_all(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError:
        if not folder.exists():  # otherwise another process was faster
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def joined(*parts):
    return os.pathsep.join(str(part) for part in parts if part)


def environment(folder, state=None):
    """The variables of a job that has the GPU. `state` is a folder for what its processes share: jobs with the same one use the same GPU.
    Beside these: SIMULATED_GPU_COUNT (default 1), SIMULATED_GPU_MEMORY (bytes of each, default 8 GiB), SIMULATED_NCCL_VERSION (default
    23003)."""
    lib = Path(folder) / "lib"
    return {
        "LD_LIBRARY_PATH": joined(lib, os.environ.get("LD_LIBRARY_PATH")),
        "PYTHONPATH": joined(Path(folder) / "site", os.environ.get("PYTHONPATH")),
        "SIMULATED_GPU_LIBRARY": str(lib / "libsimulated_gpu.so"),
        "SIMULATED_GPU_STATE": str(state or Path(folder) / "state"),
        "OMP_NUM_THREADS": "1",  # each stream has a thread already
    }


if __name__ == "__main__":
    for variable, value in environment(build()).items():
        print(f"{variable}={value}")
    sys.stdout.flush()
