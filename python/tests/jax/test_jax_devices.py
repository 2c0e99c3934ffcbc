"""Which arrays the runtime takes on a CUDA device outside of jit, and on a host that stands in for the device what becomes of them;
tests/gpu has the same on a real one. Every rank knows what all have."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy
import pytest

import horovod.jax as hvd
from horovod import _ffi
from horovod.jax import _device_path, _host
from ranks import check, mine, of_all, of_rank, x64

SCALED = {"reduction": hvd.Sum, "prescale": 2.0, "postscale": 1.0}


@pytest.fixture
def copies(monkeypatch):
    """The host's memory is the device's; the list of what had to be copied."""
    noted = []
    as_dlpack, from_jax = _ffi.as_dlpack, _host.from_jax
    monkeypatch.setattr(_device_path, "_place_of", lambda array: jax.local_devices()[0])
    monkeypatch.setattr(_device_path, "_number", lambda device: _ffi.HOST)
    monkeypatch.setattr(_device_path._Memory, "__dlpack_device__", lambda self: (1, 0))
    monkeypatch.setattr(_ffi, "takes_device", lambda number: True)
    monkeypatch.setattr(_device_path, "_device", None)
    monkeypatch.setattr(_ffi, "as_dlpack", lambda *args: noted.append(args[1]) or as_dlpack(*args))
    monkeypatch.setattr(_host, "from_jax", lambda array: noted.append("to the host") or from_jax(array))
    return noted


class _OnGpu:
    """An array on GPU number 0 or 1."""

    def __init__(self, number=0, dtype="float32", memory="device", platform="gpu"):
        self.dtype, self.sharding = jnp.dtype(dtype), SimpleNamespace(memory_kind=memory)
        self._device = DEVICES[platform, number]

    def devices(self):
        return {self._device}


class _Device(SimpleNamespace):
    __hash__ = object.__hash__


DEVICES = {
    (platform, n): _Device(platform=platform, local_hardware_id=n) for platform in ("gpu", "tpu") for n in (0, 1)
}


@pytest.fixture
def gpus(monkeypatch):
    """The numbers of the GPUs that the runtime was asked for; it takes number 0."""
    asked = []
    monkeypatch.setattr(_device_path, "jax", SimpleNamespace(Array=_OnGpu, numpy=jnp))
    monkeypatch.setattr(_ffi, "takes_device", lambda number: asked.append(number) or number == 0)
    monkeypatch.setattr(_device_path, "_device", None)
    return asked


def test_which_arrays_are_taken(gpus):
    takes = _device_path.takes
    assert takes([_OnGpu(), _OnGpu(dtype="int8")], {}) and takes([_OnGpu()], SCALED)
    assert not takes([_OnGpu(dtype="int32")], SCALED) and not takes([_OnGpu()], {**SCALED, "reduction": hvd.Adasum})
    assert takes([_OnGpu(dtype="int32")], {**SCALED, "prescale": 1.0})
    assert not takes([_OnGpu(1)], {}) and not takes([_OnGpu(), _OnGpu(1)], {})
    asked = list(gpus)
    assert not takes([_OnGpu(memory="pinned_host")], {}) and not takes([_OnGpu(platform="tpu")], {})
    assert not takes([numpy.ones(1)], {}) and not takes([_OnGpu(), numpy.ones(1)], {})
    assert gpus == asked, "the runtime keeps the first device that it is asked for"


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "bfloat16", "float32", "int32", "complex64"])
def test_reductions(copies, dtype):
    check(hvd.allreduce(mine((4, 3), dtype), op=hvd.Sum), of_all((4, 3), dtype).sum(0, dtype=jnp.dtype(dtype)))
    found = hvd.allreduce({"a": mine((), dtype), "b": mine((0, 2), dtype)}, op=hvd.Sum)
    check(found["a"], of_all((), dtype).sum(0, dtype=jnp.dtype(dtype)))
    assert found["b"].shape == (0, 2)
    rows = hvd.reducescatter(mine((5, 2), dtype), op=hvd.Sum)
    counts = [5 // hvd.size() + (r < 5 % hvd.size()) for r in range(hvd.size())]
    start = sum(counts[: hvd.rank()])
    whole = of_all((5, 2), dtype).sum(0, dtype=jnp.dtype(dtype))
    check(rows, whole[start : start + counts[hvd.rank()]])
    assert copies == []


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "bfloat16", "bool"])
def test_rows(copies, dtype):
    shape = (2 * hvd.size(), 3)
    check(hvd.allgather(mine(shape, dtype)), numpy.concatenate(of_all(shape, dtype)))
    check(hvd.broadcast(mine(shape, dtype), hvd.size() - 1), of_rank(hvd.size() - 1, shape, dtype))
    sent = [of_rank(rank, shape, dtype)[2 * hvd.rank() :][:2] for rank in range(hvd.size())]
    check(hvd.alltoall(mine(shape, dtype)), numpy.concatenate(sent))
    assert copies == []


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "bfloat16", "float32"])
def test_results_of_other_sizes_are_copied_on_the_device(copies, dtype):
    found = hvd.allgather(mine((hvd.rank() + 1, 2), dtype))
    check(found, numpy.concatenate([of_rank(rank, (rank + 1, 2), dtype) for rank in range(hvd.size())]))
    if hvd.size() > 1:
        assert copies == [found.nbytes]
    copies.clear()
    splits = [rank + 1 for rank in range(hvd.size())]
    rows, received = hvd.alltoall(mine((sum(splits), 2), dtype), splits)
    check(received, numpy.full(hvd.size(), hvd.rank() + 1, "int32"))
    start = sum(splits[: hvd.rank()])
    sent = [of_rank(rank, (sum(splits), 2), dtype)[start:][: hvd.rank() + 1] for rank in range(hvd.size())]
    check(rows, numpy.concatenate(sent))
    assert "to the host" not in copies


def test_gradients(copies):
    def loss(x):
        return (hvd.allreduce(x) * hvd.allgather(x)[: x.shape[0]]).sum()

    assert jax.grad(loss)(mine()).shape == (4, 3)
    assert "to the host" not in copies


def test_what_devices_lack_goes_through_the_host(copies):
    check(hvd.allreduce(mine((3,), "int32")), (of_all((3,), "int32").sum(0) // hvd.size()).astype("int32"))
    check(hvd.allreduce(jnp.ones(3), op=hvd.Adasum), numpy.ones(3, "float32"))
    assert copies == ["to the host", "to the host"]


def test_64_bits(copies):
    with x64():
        check(hvd.allreduce(mine((4,), "float64"), op=hvd.Sum), of_all((4,), "float64").sum(0))
    assert copies == []


def test_inputs_stay_as_they_are(copies):
    given = mine()
    hvd.allreduce(given, op=hvd.Sum)
    hvd.broadcast(given, hvd.size() - 1)
    check(given, of_rank(hvd.rank()))
