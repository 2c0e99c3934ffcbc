"""Which CUDA tensors the runtime takes where they are; tests/gpu has what becomes of them."""

from types import SimpleNamespace

import pytest
import torch

import horovod.torch as hvd
from horovod import _ffi
from horovod.torch import _devices


@pytest.fixture
def runtime_takes_them(monkeypatch):
    monkeypatch.setattr(_devices, "_runtime_takes", None)
    monkeypatch.setattr(_devices, "_device", None)
    monkeypatch.setattr(_ffi, "takes_device_tensors", lambda: True)


def on_device(index, dtype=torch.float32):
    return SimpleNamespace(is_cuda=True, device=SimpleNamespace(index=index), dtype=dtype)


def takes(tensors, op=hvd.Sum, prescale=1.0, postscale=1.0):
    return _devices.take_reduction(tensors, op, prescale, postscale)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_floats(runtime_takes_them, dtype):
    tensor = on_device(0, dtype)
    for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
        assert takes([tensor], op)
    assert takes([tensor], hvd.Sum, 0.5) and takes([tensor], hvd.Average, 1.0, 2.0)
    assert not takes([tensor], hvd.Max, 0.5) and not takes([tensor], hvd.Product, 1.0, 2.0)
    assert not takes([tensor], hvd.Adasum)
    assert _devices.take_broadcast([tensor])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.bool])
def test_integers_are_not_scaled(runtime_takes_them, dtype):
    tensor = on_device(0, dtype)
    for op in (hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
        assert takes([tensor], op)
    assert not takes([tensor], hvd.Average) and not takes([tensor], hvd.Sum, 2.0)
    assert not takes([on_device(0), tensor], hvd.Average), "a group goes one way"


def test_the_first_device_is_the_one(runtime_takes_them):
    assert takes([on_device(1)])
    assert not takes([on_device(0)]) and not takes([on_device(1), on_device(0)])
    assert takes([on_device(1), on_device(1)])


def test_tensors_elsewhere_are_not_taken(runtime_takes_them):
    assert not takes([torch.ones(1)]) and not takes([on_device(0), torch.ones(1)])
    assert not _devices.take_broadcast([torch.ones(1)])


def test_without_a_driver_none_are_taken(monkeypatch):
    monkeypatch.setattr(_devices, "_runtime_takes", None)
    monkeypatch.setattr(_ffi, "takes_device_tensors", lambda: False)
    assert not takes([on_device(0)])


def test_what_the_library_says():
    assert _ffi.takes_device_tensors() == bool(_ffi.built("cuda"))
    assert not hvd.nccl_built() or hvd.cuda_built()
