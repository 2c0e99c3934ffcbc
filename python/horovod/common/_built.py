"""The features of this build of Horovod."""

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
    """Always raises ValueError: this Horovod is built without MPI."""
    raise ValueError("Horovod has been built without MPI support.")


def mpi_enabled() -> bool:
    """False: MPI is not used."""
    return False


def mpi_built() -> bool:
    """False: MPI is not used."""
    return bool(_ffi.built("mpi"))


def gloo_enabled() -> bool:
    """Whether Gloo carries the collectives."""
    return bool(_ffi.built("gloo"))


def gloo_built() -> bool:
    """Whether the library is built with Gloo."""
    return bool(_ffi.built("gloo"))


def nccl_built() -> int:
    """NCCL's version number, or 0 without NCCL."""
    return _ffi.built("nccl")


def ddl_built() -> bool:
    """False: IBM DDL is not used."""
    return bool(_ffi.built("ddl"))


def ccl_built() -> bool:
    """False: Intel oneCCL is not used."""
    return bool(_ffi.built("ccl"))


def cuda_built() -> bool:
    """Whether tensors are reduced on CUDA devices; if not, they go through host memory."""
    return bool(_ffi.built("cuda"))


def rocm_built() -> bool:
    """Whether tensors are reduced on ROCm devices; if not, they go through host memory."""
    return bool(_ffi.built("rocm"))
