"""How a function gets from ``horovod.run`` to its workers and the results get back: files in a
private folder."""

import json
import os
import stat
import sys
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import cloudpickle

_FUNCTION = "function.pickle"
_PATHS = "paths.json"


class Failure(NamedTuple):
    """What a worker raised."""

    rank: int
    caused_by_peer: bool  # it only says that another worker is gone
    text: str  # the traceback


def check_private(folder: str) -> None:
    """Raises PermissionError unless `folder` is this user's and closed to all others: what is in it
    gets unpickled."""
    info = os.lstat(folder)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise PermissionError("{} is not a private folder of this user".format(folder))


def _write(folder: str, name: str, data: bytes) -> None:
    path = os.path.join(folder, name)
    with open(path + ".part", "wb") as file:
        file.write(data)
    os.rename(path + ".part", path)


def _read(folder: str, name: str) -> Optional[bytes]:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def put_function(folder: str, call: Callable[[], Any]) -> None:
    """For the workers, with the paths that modules are found on here."""
    _write(folder, _PATHS, json.dumps([path for path in sys.path if path]).encode())
    _write(folder, _FUNCTION, cloudpickle.dumps(call))


def get_function(folder: str) -> Callable[[], Any]:
    """What put_function has put there. Raises FileNotFoundError or PermissionError."""
    check_private(folder)
    paths, function = _read(folder, _PATHS), _read(folder, _FUNCTION)
    if paths is None or function is None:
        raise FileNotFoundError("there is no function in {}".format(folder))
    sys.path.extend(path for path in json.loads(paths) if path not in sys.path)
    return cloudpickle.loads(function)


def put_result(folder: str, rank: int, value: Any) -> None:
    """What the function returned on rank `rank`."""
    _write(folder, "result.{}".format(rank), cloudpickle.dumps(value))


def put_failure(folder: str, rank: int, error: BaseException, caused_by_peer: bool) -> None:
    """What the function raised on rank `rank`."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    failure = Failure(rank, caused_by_peer, text)
    _write(folder, "failure.{}".format(rank), json.dumps(failure._asdict()).encode())


def results(folder: str) -> Dict[int, Any]:
    """What the function returned, by rank."""
    check_private(folder)
    ranks = [
        int(name[7:]) for name in os.listdir(folder) if name[:7] == "result." and name[7:].isdigit()
    ]
    return {rank: cloudpickle.loads(_read(folder, "result.{}".format(rank))) for rank in ranks}


def failures(folder: str) -> List[Failure]:
    """What was raised; causes before consequences."""
    names = [name for name in os.listdir(folder) if name[:8] == "failure." and name[8:].isdigit()]
    found = [Failure(**json.loads(_read(folder, name))) for name in names]
    return sorted(found, key=lambda failure: (failure.caused_by_peer, failure.rank))
