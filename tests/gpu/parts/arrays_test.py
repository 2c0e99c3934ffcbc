"""Arrays of CuPy, and all else on the GPU that speaks DLPack or __cuda_array_interface__, in horovod.numpy."""

import pytest


@pytest.mark.parametrize("ranks", [2, 1])
def test_arrays(checks, ranks):
    checks("arrays.py", ranks, 40)


def test_arrays_through_the_host(checks, is_simulated):
    if not is_simulated:
        pytest.skip("the part operations goes this way on a real GPU")
    checks("arrays.py", 2, 40, "-x", "HOROVOD_GPU_OPERATIONS=HOST")
