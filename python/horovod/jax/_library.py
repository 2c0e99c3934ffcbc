"""JAX, those of its internal modules that are used, and Horovod's functions in its jitted programs: libhvd_jax.so, one library
for all versions from 0.4.31 on. Other modules import JAX from here, where its version is checked.
"""

import ctypes
import os
import re
from importlib import import_module
from typing import Any

from horovod import _ffi, _missing
from horovod.common.exceptions import reported_by

TARGET = "hvd_jax_collective"  # of custom calls
_OLDEST = (0, 4, 31)
_NEEDED = "horovod.jax needs JAX 0.4.31 or newer"


def _import_jax() -> Any:
    jax = _missing.framework("jax", f"{_NEEDED}: pip install jax")
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", getattr(jax, "__version__", ""))
    if found is None or tuple(map(int, found.groups())) < _OLDEST:
        raise ImportError(f"{_NEEDED}, this is {getattr(jax, '__version__', 'unknown')}: pip install --upgrade jax")
    return jax


def _import_ffi() -> Any:
    try:
        from jax import ffi
    except ImportError:  # before 0.5
        from jax.extend import ffi
    return ffi


def _register() -> Any:
    """Registers the functions with XLA, for programs on CPUs and on CUDA. Returns the library."""
    path = os.path.join(os.path.dirname(_ffi.library_path()), "libhvd_jax.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"Horovod's library for JAX could not be loaded from {path}: {_missing.first_line(error)}"
        ) from None
    library.hvd_jax_take_failure.restype = ctypes.c_char_p
    library.hvd_jax_use.argtypes, library.hvd_jax_use.restype = [ctypes.c_char_p], ctypes.c_char_p
    problem = library.hvd_jax_use(_ffi.library_path().encode())
    if problem:
        raise ImportError(f"Horovod's library for JAX can't be used: {problem.decode()}")
    try:
        ffi.register_ffi_target(TARGET, ffi.pycapsule(library.hvd_jax_collective), platform="cpu")
        # Without a GPU JAX keeps it and does nothing.
        ffi.register_ffi_target(TARGET, ffi.pycapsule(library.hvd_jax_collective_on_cuda), platform="CUDA")
    except Exception as error:
        reason = _missing.first_line(error)
        raise ImportError(f"horovod.jax does not work with this build of JAX {jax.__version__}: {reason}") from None
    return library


jax: Any = _import_jax()
ffi: Any = _import_ffi()
_library: Any = _register()

Primitive: Any = import_module("jax.extend.core").Primitive
ad: Any = import_module("jax.interpreters.ad")
batching: Any = import_module("jax.interpreters.batching")
mlir: Any = import_module("jax.interpreters.mlir")
partial_eval: Any = import_module("jax.interpreters.partial_eval")

# JAX's own exception when values are read; a plain one when it runs a program at once.
reported_by(getattr(jax.errors, "JaxRuntimeError", RuntimeError), ValueError)


def take_failure() -> str:
    """Returns JAX's message for the first collective in a program that has broken the world since the last call; "" if there is
    none. JAX raises the error only where a result of that program is read.
    """
    return str(_library.hvd_jax_take_failure().decode("utf-8", "replace"))
