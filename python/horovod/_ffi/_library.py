"""Finds libhvd.so, checks its version, and declares its functions."""

import ctypes
import os

from horovod.common.exceptions import error_of_status

_ABI_VERSION = 27


def library_path() -> str:
    """Returns the path of libhvd.so: the environment variable HOROVOD_LIBRARY, or else the file in ``horovod/lib/``."""
    chosen = os.environ.get("HOROVOD_LIBRARY")
    if chosen:
        return chosen
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(package, "lib", "libhvd.so")


def _declare(library: ctypes.CDLL) -> None:
    int32, int64 = ctypes.c_int32, ctypes.c_int64
    queries = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
    actions = ("init", "shutdown", "join_world", "reset", "stop_timeline", "check_world", "confirm_world")
    states = (
        "is_initialized",
        "is_homogeneous",
        "is_deferred",
        "disk_is_full",
        "world_is_changing",
        "must_sync_state",
        "on_corruption",
    )
    for name in queries + actions + states:
        getattr(library, "hvd_" + name).argtypes = []
        getattr(library, "hvd_" + name).restype = int32
    library.hvd_epoch.argtypes, library.hvd_epoch.restype = [], int64
    library.hvd_set_commit.argtypes, library.hvd_set_commit.restype = [int64], None
    for name in ("begin_training", "count_step", "forget_work"):
        getattr(library, "hvd_" + name).argtypes = []
        getattr(library, "hvd_" + name).restype = None
    library.hvd_note_error.argtypes, library.hvd_note_error.restype = [ctypes.c_char_p, ctypes.c_int32], None
    library.hvd_note_checkpoints.argtypes = [int64, ctypes.c_double, ctypes.c_char_p, ctypes.c_char_p]
    library.hvd_note_checkpoints.restype = None
    library.hvd_set_join.argtypes, library.hvd_set_join.restype = [ctypes.c_void_p], None
    library.hvd_last_error.argtypes, library.hvd_last_error.restype = [], ctypes.c_char_p
    library.hvd_job_id.argtypes, library.hvd_job_id.restype = [], ctypes.c_char_p
    library.hvd_version.argtypes, library.hvd_version.restype = [], ctypes.c_char_p
    for name, argtypes in (
        ("submit", [ctypes.c_void_p, int32, int32, int32, ctypes.POINTER(int64)]),
        (
            "submit_then",
            [ctypes.c_void_p, int32, int32, ctypes.c_void_p, ctypes.c_void_p],
        ),
        ("add_process_set", [ctypes.POINTER(int32), int32, ctypes.POINTER(int32)]),
        ("remove_process_set", [int32]),
        ("member", [int32, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)]),
        ("open_group", [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(int32)]),
        ("abort_group", [int32, ctypes.c_char_p]),
        ("close_group", [int32]),
        ("send", [int32, int32, int64, int32, ctypes.c_void_p, int64, ctypes.POINTER(int64)]),
        ("receive", [int32, int32, int64, int32, ctypes.c_void_p, int64, ctypes.POINTER(int64)]),
        ("poll_transfer", [int64, ctypes.POINTER(int32)]),
        ("wait_transfer", [int64, ctypes.c_double, ctypes.POINTER(int32)]),
        ("poll", [int64, ctypes.POINTER(int32)]),
        ("wait", [int64, ctypes.c_double]),
        ("result", [int64, int32, ctypes.c_void_p]),
        ("release", [int64]),
        ("finish", [ctypes.POINTER(int64), int32]),
        ("prepare", [ctypes.c_void_p, int32, ctypes.POINTER(ctypes.c_void_p)]),
        ("run", [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, int32]),
        ("store_begin", [int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
        ("store_append", [ctypes.c_void_p, ctypes.c_void_p, int32]),
        ("store_checksums", [int64, ctypes.c_void_p, ctypes.c_void_p, int32, ctypes.c_void_p]),
        ("store_seal", [int64]),
        ("store_take_kept", []),
        (
            "store_newest",
            [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(int64), ctypes.POINTER(int64)],
        ),
        ("seal", [ctypes.c_char_p, int32, ctypes.c_void_p, int64]),
        ("open", [ctypes.c_char_p, int32] + [ctypes.c_void_p] * 3 + [int32]),
        ("record_event", [int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
        ("destroy_event", [int32, ctypes.c_void_p]),
        ("device_copy", [int32, ctypes.c_void_p, int32, ctypes.c_void_p, ctypes.c_void_p, int64]),
        ("device_allocate", [int32, int64, ctypes.POINTER(ctypes.c_void_p)]),
        ("device_free", [int32, ctypes.c_void_p]),
        ("device_of", [ctypes.c_void_p, ctypes.POINTER(int32)]),
        ("start_timeline", [ctypes.c_char_p, int32]),
        ("takes_device", [int32]),
        ("stack_request", [ctypes.POINTER(int32), ctypes.POINTER(int32)]),
        ("report_failure", [ctypes.c_char_p, int32, int32]),
        ("built", [ctypes.c_char_p]),
        ("arm_failpoints", []),
        ("pass_failpoint", [ctypes.c_char_p]),
    ):
        getattr(library, "hvd_" + name).argtypes = argtypes
        getattr(library, "hvd_" + name).restype = int32
    library.hvd_start.argtypes = library.hvd_run.argtypes
    library.hvd_start_group.argtypes = [ctypes.c_void_p] * 3 + [int32]
    library.hvd_start.restype = library.hvd_start_group.restype = int64
    library.hvd_run.restype = int64
    library.hvd_copy.argtypes, library.hvd_copy.restype = [ctypes.c_void_p] * 3 + [int32], None
    library.hvd_forget.argtypes, library.hvd_forget.restype = [ctypes.c_void_p], None
    library.hvd_forget_transfer.argtypes, library.hvd_forget_transfer.restype = [int64], None


def _load() -> ctypes.CDLL:
    path = library_path()
    # LOCAL and DEEPBIND: the library's gRPC and Protobuf and those of a framework must not see each
    # other.
    mode = os.RTLD_NOW | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0)
    try:
        loaded = ctypes.CDLL(path, mode=mode)
        loaded.hvd_abi_version.argtypes, loaded.hvd_abi_version.restype = [], ctypes.c_int32
        found = loaded.hvd_abi_version()
    except (OSError, AttributeError) as error:
        raise ImportError(f"Horovod's runtime library could not be loaded from {path}: {error}") from error
    if found != _ABI_VERSION:
        raise ImportError(
            f"{path} has ABI version {found}, but this Python package needs {_ABI_VERSION}; they come from different "
            "versions of Horovod"
        )
    _declare(loaded)
    return loaded


library = _load()


def last_error() -> str:
    """Returns the error message of this thread's last call."""
    text: bytes = library.hvd_last_error()
    return text.decode("utf-8", "replace")


def check(code: int) -> None:
    """Raises the exception for a status code, unless it is OK."""
    if code != 0:
        raise error_of_status(code, last_error())
