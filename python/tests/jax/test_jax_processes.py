"""What horovod.jax does in processes that are another way: without JAX, with several devices, before init. These run
beside the ranks, each in a world of one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import horovod.jax as hvd
from horovod import _ffi


@pytest.fixture
def python(tmp_path):
    """Runs Python code in a separate process on rank 0; returns its error, or its last line of output."""
    if hvd.rank() != 0:
        pytest.skip("rank 0 does so")

    def run(code, **environment):
        others = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**others, **environment}, cwd=tmp_path, capture_output=True, text=True,
            timeout=100,
        )  # fmt: skip
        errors = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception): .*)", done.stderr, re.M)
        return errors[-1] if errors else done.stdout.strip()

    return run


@pytest.mark.parametrize(
    "code, text",
    [
        ("sys.modules['jax'] = None", "(import of jax halted; None in sys.modules)"),
        ("sys.modules['jax'] = types.ModuleType('jax')", ", this is unknown: pip install --upgrade jax"),
        ("import jax; jax.__version__ = '0.4.30'", ", this is 0.4.30: pip install --upgrade jax"),
    ],
)
def test_a_jax_that_is_missing_or_too_old_is_reported_in_a_line(python, code, text):
    line = python(f"import sys, types; {code}; import horovod.jax")
    assert line.startswith("ImportError: horovod.jax needs JAX 0.4.31 or newer") and line.endswith(text)


def test_a_library_of_another_version_is_reported_in_a_line(python, tmp_path):
    for library in Path(_ffi.library_path()).parent.iterdir():  # a wheel has what they need beside them
        (tmp_path / library.name).symlink_to(library)
    (tmp_path / "libhvd_jax.so").unlink()
    (tmp_path / "libhvd_jax.so").write_text("")
    line = python("import horovod.jax", HOROVOD_LIBRARY=str(tmp_path / "libhvd.so"))
    assert line.startswith(
        f"ImportError: Horovod's library for JAX could not be loaded from {tmp_path}/libhvd_jax.so: "
    )


def test_devices_can_be_chosen_after_init(python):
    """JAX takes memory of all GPUs that it sees when it starts, so the process's own must be chosen before."""
    line = python(
        "import horovod.jax as hvd; hvd.init(); from jax._src import xla_bridge as b; print(len(b._backends))"
    )
    assert line == "0"


def test_collectives_before_init(python):
    for function in ("hvd.allreduce", "jax.jit(hvd.allreduce)", "jax.jit(hvd.allgather)"):
        line = python(f"import jax, horovod.jax as hvd; {function}(jax.numpy.ones(2))")
        assert line == "HorovodInternalError: Horovod has not been initialized: call hvd.init() first"


TWO = "--xla_force_host_platform_device_count=2"
# shard_map of newer and of older versions.
MAPPED = (
    "by = dict(mesh=mesh, in_specs=P('x'), out_specs=P('x')); "
    "f = jax.shard_map(hvd.allreduce, **by) if hasattr(jax, 'shard_map') else "
    "importlib.import_module('jax.experimental.shard_map').shard_map(hvd.allreduce, check_rep=False, **by); jax.jit(f)(x)"
)
START = (
    "import importlib, jax, horovod.jax as hvd; from jax.sharding import Mesh, NamedSharding, PartitionSpec as P; hvd.init(); "
    "mesh = Mesh(jax.devices(), ('x',)); x = jax.numpy.arange(4.0); spread = jax.device_put(x, NamedSharding(mesh, P('x')));"
)


@pytest.mark.parametrize("code", [
    "jax.pmap(hvd.allreduce)(x.reshape(2, 2))",
    "jax.jit(hvd.allreduce)(spread)",
    "jax.jit(lambda x: jax.lax.with_sharding_constraint(hvd.allreduce(x), NamedSharding(mesh, P('x'))))(x)",
        MAPPED,
])  # fmt: skip
def test_programs_on_several_devices_are_refused(python, code):
    line = python(START + code, XLA_FLAGS=TWO)
    assert line.startswith("HorovodRequestError: horovod.jax needs one device per process, but this program")
    assert line.endswith("runs on 2: start a process for each device.")


def test_arrays_on_several_devices_are_refused(python):
    line = python(START + "hvd.allreduce(spread)", XLA_FLAGS=TWO)
    assert line.startswith("ValueError: horovod.jax needs arrays on one device, this one is on 2")


def test_one_of_several_devices_will_do(python):
    code = (
        "y = jax.device_put(x, jax.devices()[1]); a = hvd.allreduce(y); b = jax.jit(hvd.allreduce)(y);"
        "print([r.devices() == {jax.devices()[1]} and r.tolist() == x.tolist() for r in (a, b)])"
    )
    assert python(START + code, XLA_FLAGS=TWO) == "[True, True]"


@pytest.mark.parametrize("platform", ["cuda", "cpu"])
def test_programs_for_a_platform(python, platform):
    """JAX makes programs for platforms that this machine lacks, too."""
    line = python(
        "import jax, horovod.jax as hvd; hvd.init(); "
        f"text = jax.jit(hvd.allreduce).trace(jax.numpy.ones(2)).lower(lowering_platforms=('{platform}',)).as_text(); "
        "print(text.count('@hvd_jax_collective'))"
    )
    assert line == "1"


@pytest.mark.parametrize("platforms, text", [(("tpu",), "not on tpu"), (("cpu", "cuda"), "not on cpu and cuda")])
def test_programs_for_other_platforms_are_refused(python, platforms, text):
    line = python(
        "import jax, horovod.jax as hvd; hvd.init(); "
        f"jax.jit(hvd.allreduce).trace(jax.numpy.ones(2)).lower(lowering_platforms={platforms})"
    )
    assert line.startswith("HorovodRequestError: horovod.jax runs on CPUs or on CUDA within jit, " + text)
