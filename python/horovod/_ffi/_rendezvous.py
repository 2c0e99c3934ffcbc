"""The functions of ``horovod/rendezvous.h``, which libhvd.so contains."""

import ctypes
import operator
from typing import Any, Callable, Optional

from horovod._ffi._library import library

_ABI_VERSION = 1
_MOST = 2**31 - 1

_START_WORKER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_STOP_WORKER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_double)
_TEXT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_FINISHED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Worker(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("worker", ctypes.c_uint64),
        ("host", ctypes.c_char_p),
        ("environment", ctypes.POINTER(ctypes.c_char_p)),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("success", ctypes.c_int32),
        ("exit_code", ctypes.c_int32),
        ("summary", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("host", ctypes.c_char_p),
        ("exit_meaning", ctypes.c_char_p),
        ("exception", ctypes.c_char_p),
    ]


class _JobOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("np", ctypes.c_int32),
        ("min_np", ctypes.c_int32),
        ("max_np", ctypes.c_int32),
        ("spares", ctypes.c_int32),
        ("start_timeout", ctypes.c_double),
        ("failure_grace", ctypes.c_double),
        ("encrypt_data", ctypes.c_int32),
        ("elastic_timeout", ctypes.c_double),
        ("rejoin_timeout", ctypes.c_double),
        ("join_delay", ctypes.c_double),
        ("drain_grace", ctypes.c_double),
        ("max_failures", ctypes.c_int32),
        ("failure_window", ctypes.c_double),
        ("failures_without_progress", ctypes.c_int32),
        ("reset_limit", ctypes.c_int32),
        ("cooldown", ctypes.c_double),
        ("cooldown_longest", ctypes.c_double),
        ("context", ctypes.c_void_p),
        ("start_worker", _START_WORKER),
        ("stop_worker", _STOP_WORKER),
        ("host_free", _TEXT),
        ("finished", _FINISHED),
        ("notice", _TEXT),
        ("reattach_timeout", ctypes.c_double),
        ("journal_failed", _TEXT),
    ]


class _Host(ctypes.Structure):
    _fields_ = [("host", ctypes.c_char_p), ("slots", ctypes.c_int32), ("machine", ctypes.c_char_p)]


class _Exit(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("worker", ctypes.c_uint64),
        ("exit_code", ctypes.c_int32),
        ("signal", ctypes.c_int32),
        ("core_dumped", ctypes.c_int32),
        ("out_of_memory", ctypes.c_int32),
        ("start_error", ctypes.c_char_p),
        ("last_output", ctypes.c_char_p),
        ("unknown_end", ctypes.c_char_p),
    ]


class _KeptJob(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("np", ctypes.c_int32),
        ("min_np", ctypes.c_int32),
        ("max_np", ctypes.c_int32),
        ("starts_workers", ctypes.c_int32),
        ("ended", ctypes.POINTER(_Result)),
        ("problem", ctypes.c_char_p),
    ]


class _EarlierWorker(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("worker", ctypes.c_uint64),
        ("host", ctypes.c_char_p),
        ("pid", ctypes.c_int64),
    ]


def _declare() -> None:
    pointer, text, int32 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32
    made = ctypes.POINTER(pointer)
    for name, restype, argtypes in (
        ("last_error", text, []),
        ("free", None, [pointer]),
        ("start", int32, [int32, ctypes.POINTER(text), int32, made]),
        ("start_with_state", int32, [int32, ctypes.POINTER(text), int32, text, made]),
        ("stop", int32, [pointer]),
        ("kept_jobs", int32, [pointer, pointer, _TAKE]),
        ("forget_job", int32, [pointer, text]),
        ("earlier_workers", int32, [pointer, pointer, _TAKE]),
        ("start_again", int32, [pointer, ctypes.c_uint64]),
        ("address", text, [pointer, int32]),
        ("metrics", int32, [pointer, made]),
        ("job_options_init", None, [ctypes.POINTER(_JobOptions), ctypes.c_size_t]),
        ("add_job", int32, [pointer, ctypes.POINTER(_JobOptions), made]),
        ("remove_job", int32, [pointer]),
        ("job_id", text, [pointer]),
        ("credentials", int32, [pointer, made]),
        ("offer_slots", int32, [pointer, ctypes.POINTER(_Host), int32]),
        ("set_limits", int32, [pointer, int32, int32]),
        ("report_started", int32, [pointer, ctypes.c_uint64, ctypes.c_int64]),
        ("report_exit", int32, [pointer, ctypes.POINTER(_Exit)]),
        ("drain", int32, [pointer, text, ctypes.c_double, text]),
        ("request_stop", int32, [pointer, text, int32, ctypes.c_double]),
        ("describe", int32, [pointer, made]),
        ("job_metrics", int32, [pointer, made]),
    ):
        function = _function(name)
        function.restype, function.argtypes = restype, argtypes


def _function(name: str) -> Any:
    return getattr(library, "hvd_rendezvous_" + name)


_declare()


class Failure(Exception):
    """A function has returned the error code `code`; `text` is a one-line message."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a code. Raises Failure."""
    code = _function(name)(*arguments)
    if code != 0:
        raise Failure(code, _function("last_error")().decode("utf-8", "replace"))


def text_of(name: str, handle: int) -> str:
    """Returns the text that a function makes for a server or a job. Raises Failure."""
    made = ctypes.c_void_p()
    call(name, handle, ctypes.byref(made))
    try:
        return ctypes.string_at(made.value or 0).decode("utf-8", "replace")
    finally:
        _function("free")(made)


def text(what: str, value: str) -> bytes:
    """Returns a name for C. Raises TypeError, or ValueError for a name that C would cut off or can't represent."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str: Got {value!r}")
    if "\0" in value:
        raise ValueError(f"{value!r} has a NUL character")
    return value.encode()


def shown(value: str) -> bytes:
    """Returns a text for people, such as output, for C; characters that C can't represent are replaced."""
    return value.replace("\0", "\ufffd").encode(errors="replace")


def int32(name: str, value: int) -> int:
    """Returns a number for C. Raises TypeError, or ValueError if it is too large, because C would take another number."""
    return _within(name, value, -_MOST, _MOST)


def int64(name: str, value: int) -> int:
    """Returns a number for C, as :func:`int32` does."""
    return _within(name, value, 1 - (1 << 63), (1 << 63) - 1)


def uint64(name: str, value: int) -> int:
    """Returns a number for C, as :func:`int32` does."""
    return _within(name, value, 0, (1 << 64) - 1)


def _within(name: str, value: int, least: int, most: int) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number: Got {value!r}")
    if not least <= operator.index(value) <= most:
        raise ValueError(f"{name} is {value}, and must be from {least} to {most}")
    return value


def seconds(name: str, value: float) -> float:
    """Returns a time for C. Raises TypeError."""
    if not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number of seconds: Got {value!r}")
    return value


def start(listen: list[str], state_dir: Optional[str] = None) -> int:
    """Starts a server and returns it. `state_dir`: where its jobs outlive this process. Raises Failure."""
    server = ctypes.c_void_p()
    addresses = (ctypes.c_char_p * len(listen))(*(text("an address", address) for address in listen))
    if state_dir is None:
        call("start", _ABI_VERSION, addresses, len(listen), ctypes.byref(server))
    else:
        call(
            "start_with_state", _ABI_VERSION, addresses, len(listen), text("state_dir", state_dir), ctypes.byref(server)
        )
    return server.value or 0


def kept_jobs(server: int) -> list[dict[str, Any]]:
    """Returns the members of each hvd_rendezvous_kept_job; "ended" is None or the members of hvd_rendezvous_result. Raises
    Failure.
    """
    found: list[dict[str, Any]] = []

    def take(_: object, address: int) -> None:
        kept = _KeptJob.from_address(address)
        sizes = {name: getattr(kept, name) for name in ("np", "min_np", "max_np")}
        found.append(
            {
                "id": kept.id.decode("utf-8", "replace"),
                **sizes,
                "starts_workers": bool(kept.starts_workers),
                "ended": _result(kept.ended.contents) if kept.ended else None,
                "problem": None if kept.problem is None else kept.problem.decode("utf-8", "replace"),
            }
        )

    call("kept_jobs", server, None, _TAKE(take))
    return found


def earlier_workers(job: int) -> list[tuple[int, str, int]]:
    """Returns a worker, a host and a pid for each earlier worker. Raises Failure."""
    found: list[tuple[int, str, int]] = []

    def take(_: object, address: int) -> None:
        earlier = _EarlierWorker.from_address(address)
        found.append((earlier.worker, earlier.host.decode("utf-8", "replace"), earlier.pid))

    call("earlier_workers", job, None, _TAKE(take))
    return found


def addresses(server: int) -> list[str]:
    """Returns the addresses at which a server listens."""
    found: list[str] = []
    while True:
        address: Optional[bytes] = _function("address")(server, len(found))
        if address is None:
            return found
        found.append(address.decode())


def job_id(job: int) -> str:
    """Returns the id of a job."""
    name: bytes = _function("job_id")(job)
    return name.decode("utf-8", "replace")


class Callbacks:
    """The callbacks of a job, for C. They must exist as long as the job."""

    def __init__(
        self,
        start_worker: Optional[Callable[[int, str, dict[str, str]], None]],
        stop_worker: Optional[Callable[[int, float], None]],
        host_free: Optional[Callable[[str], None]],
        finished: Optional[Callable[[dict[str, Any]], None]],
        notice: Optional[Callable[[str], None]],
        journal_failed: Optional[Callable[[str], None]],
    ) -> None:
        self.start_worker = _START_WORKER() if start_worker is None else _START_WORKER(_starter(start_worker))
        self.stop_worker = _STOP_WORKER()
        if stop_worker is not None:
            stop = stop_worker
            self.stop_worker = _STOP_WORKER(lambda _, worker, grace: stop(worker, grace))
        self.host_free = _TEXT() if host_free is None else _TEXT(_with_text(host_free))
        self.finished = _FINISHED() if finished is None else _FINISHED(_finisher(finished))
        self.notice = _TEXT() if notice is None else _TEXT(_with_text(notice))
        self.journal_failed = _TEXT() if journal_failed is None else _TEXT(_with_text(journal_failed))


def _with_text(function: Callable[[str], None]) -> Callable[[object, bytes], None]:
    return lambda _, text: function(text.decode("utf-8", "replace"))


def _starter(function: Callable[[int, str, dict[str, str]], None]) -> Callable[[object, int], None]:
    def start_worker(_: object, address: int) -> None:
        worker = _Worker.from_address(address)
        environment = {}
        for variable in worker.environment:
            if variable is None:
                break
            name, _, value = variable.decode("utf-8", "surrogateescape").partition("=")
            environment[name] = value
        function(worker.worker, worker.host.decode("utf-8", "replace"), environment)

    return start_worker


def _finisher(function: Callable[[dict[str, object]], None]) -> Callable[[object, int], None]:
    return lambda _, address: function(_result(_Result.from_address(address)))


def _result(result: _Result) -> dict[str, object]:
    texts = {
        name: getattr(result, name).decode("utf-8", "replace")
        for name in ("summary", "host", "exit_meaning", "exception")
    }
    return {"success": bool(result.success), "exit_code": result.exit_code, "rank": result.rank, **texts}


def add_job(server: int, name: Optional[str], options: dict[str, Any], callbacks: Callbacks) -> int:
    """Creates a job and returns it; `options` are members of hvd_rendezvous_job_options. Raises Failure."""
    given = _JobOptions()
    _function("job_options_init")(ctypes.byref(given), ctypes.sizeof(given))
    given.id = None if name is None else text("id", name)
    kinds = {field[0]: field[1] for field in _JobOptions._fields_}
    for option, value in options.items():
        setattr(given, option, (int32 if kinds[option] is ctypes.c_int32 else seconds)(option, value))
    for callback, function in vars(callbacks).items():
        setattr(given, callback, function)
    job = ctypes.c_void_p()
    call("add_job", server, ctypes.byref(given), ctypes.byref(job))
    return job.value or 0


def offer_slots(job: int, hosts: list[tuple[str, int, str]]) -> None:
    """Offers hosts, each a name, a number of slots and a machine. Raises Failure."""
    made = (
        _Host(text("a host's name", host), int32(f"{host}'s slots", slots), text("machine", machine))
        for host, slots, machine in hosts
    )
    given = (_Host * len(hosts))(*made)
    call("offer_slots", job, given, len(hosts))


def report_exit(job: int, worker: int, **how: object) -> None:
    """Reports the end of a worker; `how`: members of hvd_rendezvous_exit. Raises Failure."""
    exit = _Exit(size=ctypes.sizeof(_Exit), worker=uint64("worker", worker), **how)
    call("report_exit", job, ctypes.byref(exit))
