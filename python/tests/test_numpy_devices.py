"""Arrays in a device's memory, as far as they can be had without one; tests/gpu has the operations."""

import pickle
import weakref

import numpy as np
import pytest

from horovod import _ffi
from horovod.numpy import DeviceArray, _device_arrays

TYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


def numpy_lends(dtype):
    """An old numpy has no bool in DLPack."""
    try:
        np.zeros(1, dtype).__dlpack__()
    except BufferError:
        return False
    return True


TYPES += ["bool"] if numpy_lends("bool") else []


@pytest.mark.parametrize("dtype", TYPES)
def test_dlpack_of_numpy_is_read(dtype):
    array = np.ones((4, 6), dtype)[1:, ::2]
    lent = _ffi.read_dlpack(array.__dlpack__())
    assert lent.address == array.ctypes.data and lent.shape == (3, 3) and lent.strides == (6, 2) and lent.dtype == dtype


class Lent:
    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **_):
        return _ffi.new_dlpack(self.array.ctypes.data, self.array.shape, self.array.dtype.name, _ffi.HOST, self.array)


@pytest.mark.parametrize("dtype", TYPES)
def test_own_dlpack_is_read_by_numpy(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    assert (np.from_dlpack(Lent(array)) == array).all()


@pytest.mark.parametrize(
    "shape, strides, expected",
    [
        ((2, 3), (3, 1), True),
        ((2, 3), None, True),
        ((2, 3), (1, 2), False),
        ((2, 3), (6, 2), False),
        ((1, 3), (99, 1), True),
        ((0, 3), (7, 7), True),
        ((), (), True),
    ],
)
def test_contiguity(shape, strides, expected):
    assert _device_arrays._is_contiguous(shape, strides) == expected


@pytest.fixture
def array():
    return DeviceArray(_device_arrays.View(((4, 2), "float32"), 1 << 20, 0, True), None)


def test_device_array_says_what_it_is(array):
    assert (array.shape, array.ndim, array.size, array.nbytes, len(array)) == ((4, 2), 2, 8, 32, 4)
    assert array.dtype == np.float32 and array[:3].shape == (3, 2)
    assert repr(array) == "DeviceArray(shape=(4, 2), dtype=float32, device=0)"
    assert array.__cuda_array_interface__["data"] == (1 << 20, False) and array.__dlpack_device__() == (2, 0)
    lent = _ffi.read_dlpack(array.__dlpack__(stream=1))
    assert (lent.address, lent.shape, lent.dtype, lent.device) == (1 << 20, (4, 2), "float32", 0)


@pytest.mark.parametrize("wrong", [np.asarray, pickle.dumps, lambda array: array[1], lambda array: array[::2]])
def test_device_array_refuses_what_it_can_not_do(array, wrong):
    with pytest.raises(TypeError, match=r"cupy\.asarray"):
        wrong(array)


def test_unused_capsule_frees_its_owner():
    def lend():
        array = np.zeros(3)
        return weakref.ref(array), _ffi.new_dlpack(array.ctypes.data, array.shape, "float64", _ffi.HOST, array)

    (untaken, capsule), (kept, still) = lend(), lend()
    del capsule
    taken, lent = lend()
    view = np.from_dlpack(LentCapsule(lent))
    del lent
    for _ in range(100):
        lend()
    assert untaken() is None
    assert kept() is not None and _ffi.read_dlpack(still).shape == (3,)
    assert taken() is not None and view.tolist() == [0, 0, 0]
    del view
    assert taken() is None


class LentCapsule:
    """An object that gives an existing capsule to np."""

    def __init__(self, capsule):
        self.capsules = [capsule]

    def __dlpack__(self, **_):
        return self.capsules.pop()

    def __dlpack_device__(self):
        return 1, 0
