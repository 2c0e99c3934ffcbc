"""The Python of the caller, as its workers take it over: its version, and the folders in which it looks for modules."""

import json
import os
import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # where this package is
# Variables of a worker, which removes them.
_ADDED = "HOROVOD_PACKAGE_PATH"  # what was added to PYTHONPATH for it to find this package
_OF_TASK = "HOROVOD_TASK_PATHS"  # folders that an engine's task has got for modules
_LAST = "HOROVOD_LAST_PATH"  # the working directory of an engine's task, where it looks for modules itself

# ``python -m`` and ``python -c`` look for modules in the working directory first, where another user may have put a json.py: it may
# be a folder that all users may write to. The option -P exists only since Python 3.11; with it there is no such entry.
WITHOUT_FOLDER = "import sys; sys.path[:1] = filter(None, sys.path[:1])"


class CallersPython(NamedTuple):
    """A Python, and its sys.path."""

    implementation: str
    version: str  # major.minor
    executable: str
    prefix: str
    paths: list[str]
    standard: list[str]  # those of them that belong to the interpreter: its modules and its packages

    @classmethod
    def here(cls) -> "CallersPython":
        """This process's."""
        paths = [path or os.getcwd() for path in sys.path]
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        standard = list(filter(_is_standard, paths))
        return cls(sys.implementation.name, version, sys.executable, sys.prefix, paths, standard)

    def check(self) -> None:
        """Raises RuntimeError if this process can't unpickle what the caller has pickled: code differs from version to version."""
        own = CallersPython.here()
        if (own.implementation, own.version) != (self.implementation, self.version):
            raise RuntimeError(
                f"the caller runs {self.implementation} {self.version} ({self.executable}), this worker {own.implementation} "
                f"{own.version} ({own.executable}): functions can't be passed on; use one version on all machines"
            )

    def folders_only_here(self) -> list[str]:
        """Returns the folders that only this process has in sys.path, without the interpreter's."""
        return [path for path in sys.path if path not in self.paths and not _is_standard(path)]

    def take_paths(self, first: Sequence[str] = ()) -> None:
        """Makes sys.path that of the caller, in its order.

        The interpreter's own folders are this one's. Others that only this process has are last.

        Args:
          first: folders that follow the first one, that of the script.
        """
        own = [path for path in sys.path if path]
        wanted = self.paths
        if self.prefix != sys.prefix:
            wanted = _with_own_standard(self.paths, self.standard, [path for path in own if _is_standard(path)])
        sys.path[:] = dict.fromkeys([*wanted[:1], *first, *wanted[1:], *own])


def _is_standard(path: str) -> bool:
    """Whether a folder belongs to the interpreter."""
    return os.path.normpath(path) in _standard_folders() or os.path.basename(path) == _ZIP


_ZIP = f"python{sys.version_info.major}{sys.version_info.minor}.zip"


def _standard_folders() -> set[str]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {os.path.join(folder, "lib-dynload") for folder in folders} | set(_site_folders())
    return set(map(os.path.normpath, folders))


def _site_folders() -> list[str]:
    folders = list(site.getsitepackages())
    return [*folders, site.getusersitepackages()] if site.ENABLE_USER_SITE else folders


def _with_own_standard(paths: list[str], theirs: list[str], own: list[str]) -> list[str]:
    """The paths with this interpreter's folders in place of the caller's, which are last."""
    place = next((number for number, path in enumerate(paths) if path in theirs), len(paths))
    users = [path for path in paths[place:] if path not in theirs]
    return [*paths[:place], *own, *users, *(path for path in theirs if path not in own)]


def module_command(module: str, executable: Optional[str] = None) -> list[str]:
    """Returns the command that does what ``python -m MODULE`` does, but does not look for modules in the working directory.

    Args:
      module: the module's name.
      executable: the Python; None: that of this process.
    """
    run = f"{WITHOUT_FOLDER}; import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [executable or sys.executable, "-c", run]


def paths_of_start() -> list[str]:
    """Undoes what :func:`with_package` has done to PYTHONPATH, and adds the last folder of :func:`with_folders` to sys.path. Returns
    the folders that the task of an engine has got for its modules."""
    first = os.environ.pop(_OF_TASK, None)
    last = os.environ.pop(_LAST, None)
    if last is not None:
        sys.path.append(last)
    added = os.environ.pop(_ADDED, None)
    if added is not None:
        rest = os.environ.get("PYTHONPATH", "").removesuffix(added).removesuffix(os.pathsep)
        if rest:
            os.environ["PYTHONPATH"] = rest
        else:
            os.environ.pop("PYTHONPATH", None)
    return json.loads(first or "[]")  # type: ignore[no-any-return]


def with_folders(environment: Mapping[str, str], folders: Sequence[str]) -> dict[str, str]:
    """Returns an environment for the worker of an engine's task. It looks for modules in these folders before others, and last in
    the working directory if this process, the task, looks there at all."""
    here = os.getcwd()
    paths = [*folders, *filter(None, [environment.get("PYTHONPATH")])]
    return {
        **environment,
        _OF_TASK: json.dumps(list(folders)),
        **({_LAST: here} if here in map(os.path.abspath, sys.path) else {}),
        **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {}),
    }


def with_package(environment: Mapping[str, str], executable: Optional[str] = None) -> dict[str, str]:
    """Returns an environment in which a Python finds this very package.

    Nothing is changed if it does so anyway: a folder in PYTHONPATH comes before Python's own modules, and should not be one of
    many packages.

    Args:
      executable: the Python; None: that of this process.
    """
    result = dict(environment)
    given = result.get("PYTHONPATH")
    is_own = executable in (None, sys.executable)
    if _PACKAGE in (given or "").split(os.pathsep) or (is_own and _PACKAGE in map(os.path.normpath, _site_folders())):
        return result
    result["PYTHONPATH"] = f"{given}{os.pathsep}{_PACKAGE}" if given else _PACKAGE
    result[_ADDED] = _PACKAGE
    return result
