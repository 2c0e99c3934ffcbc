"""Makes torch's device type cuda the simulated GPU of tests/gpu/simulated, and ``torch.cuda`` say so. torch loads it at the end of
``import torch``, by the entry point that build.py writes."""

import atexit
import ctypes
import os

_library = None


def library():
    """The compiled extension of torch."""
    return _library


def load():
    """Called by torch, once."""
    global _library
    import torch

    path = os.environ["SIMULATED_GPU_LIBRARY"]
    torch.ops.load_library(path)
    _library = ctypes.CDLL(path)
    from simulated_gpu import devices, graphs, memory, streams

    for part in (devices, streams, memory, graphs):
        part.install()
    # Kernels use torch's objects, which are destroyed after this.
    atexit.register(_library.simulated_gpu_end)
