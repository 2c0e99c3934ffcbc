"""Queries of what this build of Horovod contains."""

from horovod import _ffi

__all__ = [
    "ccl_built",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rocm_built",
]


def mpi_threads_supported() -> bool:
    """Always raises ValueError: this Horovod is built without MPI.

    Raises:
      ValueError: always.
    """
    raise ValueError("Horovod has been built without MPI support.")


def mpi_enabled() -> bool:
    """Returns False: MPI is not used."""
    return False


def mpi_built(verbose: bool = False) -> bool:
    """Returns False: MPI is not used.

    Args:
      verbose: not used.
    """
    return bool(_ffi.built("mpi"))


def gloo_enabled() -> bool:
    """Returns whether Gloo runs the collectives."""
    return bool(_ffi.built("gloo"))


def gloo_built(verbose: bool = False) -> bool:
    """Returns whether the library is built with Gloo.

    Args:
      verbose: not used.
    """
    return bool(_ffi.built("gloo"))


def nccl_built(verbose: bool = False) -> int:
    """Returns NCCL's version number, or 0 if the library is built without NCCL.

    Args:
      verbose: not used.
    """
    return _ffi.built("nccl")


def ddl_built(verbose: bool = False) -> bool:
    """Returns False: IBM DDL is not used.

    Args:
      verbose: not used.
    """
    return bool(_ffi.built("ddl"))


def ccl_built(verbose: bool = False) -> bool:
    """Returns False: Intel oneCCL is not used.

    Args:
      verbose: not used.
    """
    return bool(_ffi.built("ccl"))


def cuda_built(verbose: bool = False) -> bool:
    """Returns whether tensors are reduced on CUDA devices. If not, they are copied to host memory.

    Args:
      verbose: not used.
    """
    return bool(_ffi.built("cuda"))


def rocm_built(verbose: bool = False) -> bool:
    """Returns whether tensors are reduced on ROCm devices. If not, they are copied to host memory.

    Args:
      verbose: not used.
    """
    return bool(_ffi.built("rocm"))
