"""TensorFlow, and Horovod's operations for it: libhvd_tensorflow.so, one library for all versions from 2.13 on."""

import ctypes
import os
import re
import warnings
from typing import Any, Callable, TypeVar, cast

from horovod import _ffi, _missing
from horovod.common.exceptions import reported_by

Function = TypeVar("Function", bound=Callable[..., Any])

_OLDEST = (2, 13)
_NEEDED = "horovod.tensorflow needs TensorFlow 2.13 or newer"
_STATEFUL = "MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS"


def _import_tensorflow() -> Any:
    tensorflow = _missing.framework("tensorflow", f"{_NEEDED}: pip install tensorflow")
    found = re.match(r"(\d+)\.(\d+)", getattr(tensorflow, "__version__", ""))
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise ImportError(f"{_NEEDED}, this is {tensorflow.__version__}: pip install --upgrade tensorflow")
    return tensorflow


def _load(tensorflow: Any) -> tuple[Any, ctypes.CDLL]:
    """Returns the Python functions of the operations, and the library."""
    path = os.path.join(os.path.dirname(_ffi.library_path()), "libhvd_tensorflow.so")
    try:
        functions = tensorflow.load_op_library(path)
        library = ctypes.CDLL(path)
    except (OSError, tensorflow.errors.OpError) as error:
        problem = _missing.first_line(error)
        raise ImportError(f"Horovod's operations for TensorFlow could not be loaded from {path}: {problem}") from None
    for name in ("problem", "use_xla"):
        getattr(library, "hvd_tensorflow_" + name).restype = ctypes.c_char_p
    library.hvd_tensorflow_use.argtypes = [ctypes.c_char_p]
    library.hvd_tensorflow_use.restype = ctypes.c_char_p
    problem = library.hvd_tensorflow_problem() or library.hvd_tensorflow_use(_ffi.library_path().encode())
    if problem:
        raise ImportError(
            f"Horovod's operations don't work with this build of TensorFlow {tensorflow.__version__}: "
            f"{problem.decode()}. Use a build from pip, 2.13 or newer."
        )
    return functions, library


def _run_in_any_order(names: set[str]) -> None:
    """Lets a tf.function run several of the operations concurrently, each even if its result is not used. TensorFlow would
    otherwise run them one after another, as it does with operations that have side effects.
    """
    try:
        from tensorflow.python.framework import auto_control_deps

        known = getattr(auto_control_deps, _STATEFUL, None)
    except ImportError:
        known = None
    if isinstance(known, frozenset):
        setattr(auto_control_deps, _STATEFUL, known | names)
        return
    warnings.warn(
        f"TensorFlow {tf.__version__} runs Horovod's operations of a tf.function one after another, as they were traced: "
        "that order must be the same on all ranks.",
        stacklevel=2,
    )


tf = _import_tensorflow()
reported_by(tf.errors.OpError)
functions, _library = _load(tf)
_run_in_any_order(
    {"HorovodAllreduce", "HorovodAllgather", "HorovodBroadcast", "HorovodAlltoall", "HorovodReducescatter"}
)


def missing_for_xla() -> str:
    """Returns what TensorFlow lacks for operations in programs that XLA compiles; "" if nothing."""
    text: bytes = _library.hvd_tensorflow_use_xla()
    return text.decode()


def not_converted(function: Function) -> Function:
    """Decorates a function that scripts' functions call, so that AutoGraph, which rewrites those, does not convert it. Tracing is
    faster then, and errors are raised unchanged.
    """
    wrapped = tf.autograph.experimental.do_not_convert(function)
    # AutoGraph looks for such marks. A function that has them needs no wrapper, which takes as long as an operation.
    marks = {name: value for name, value in vars(wrapped).items() if name.startswith("autograph")}
    if not marks:
        return cast(Function, wrapped)
    vars(function).update(marks)
    return function
