"""Checkpoints below a URL, in any store that fsspec supports: s3://bucket/job, gs://..., memory://...

Object stores have neither rename nor lock. So an object gets its final name at once, and appears when its upload is
completed, which is one request. The URL belongs to the job whose claim is stored there (url_claim). The store and its
credentials are configured through fsspec and its packages.
"""

import contextlib
import os
import posixpath
import re
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, Callable, Union, cast

from horovod.common import _file_urls
from horovod.elastic import checkpoint_file
from horovod.elastic.checkpoint_file import Checkpoint, Damaged, Origin, Unreadable
from horovod.elastic.checkpoint_folder import CheckpointFolder, Place
from horovod.elastic.folder_lock import InUse
from horovod.elastic.trees import Trees
from horovod.elastic.url_claim import Claim

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)")
_CHAIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*::.*:/")  # fsspec's name for several file systems, one above the other
# Stores in which there are no folders to be made; making one would make a bucket.
_FLAT = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "memory")
_PIECE = 8 << 20


class Unreachable(RuntimeError):
    """The store does not answer a request; the message says why."""


def place_of(folder: Union[str, "os.PathLike[str]"]) -> Place:
    """Returns the place that `checkpoint_dir` names. Raises ValueError if it is neither a path nor a URL, or the URL of a file
    on another host.
    """
    text = os.fspath(folder)
    if _CHAIN.match(text):
        raise ValueError(
            f"checkpoint_dir {_without_password(text)} is a chain of file systems: give the URL of the store alone, "
            "which begins after the last ::"
        )
    scheme = _SCHEME.match(text)
    if scheme is None:
        return CheckpointFolder(folder)
    if scheme[2] == "/":
        url = text.replace(":/", "://", 1)
        raise ValueError(f"checkpoint_dir {text} is not a URL, one slash is missing: give {url} as text, not as a Path")
    try:
        path = _file_urls.path_of(text)
    except ValueError as error:
        raise ValueError(f"checkpoint_dir {error}") from None
    return CheckpointUrl(text, scheme[1]) if path is None else CheckpointFolder(path)


def _without_password(url: str) -> str:
    """Returns the URL without a user and a password. The latter may contain any number of @."""
    return re.sub(r"//[^/]*@", "//", url)


class CheckpointUrl(Place):
    """Checkpoints below a URL. Errors of the store become :class:`Unreachable`, except for a missing object."""

    def __init__(self, url: str, scheme: str) -> None:
        super().__init__(_without_password(url.rstrip("/")))
        self._url, self._scheme = url.rstrip("/"), scheme
        self._store: Any = None  # fsspec's file system
        self._root = ""
        self._claim: Claim

    def make(self) -> None:
        """Checks that the store can be used. Raises ImportError, ValueError, Unreachable."""
        self.open()
        self._claim = Claim(self._store, self.path, self._key_of)
        if self._scheme not in _FLAT:
            with self._asking():
                self._store.makedirs(self._root, exist_ok=True)

    def open(self) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ImportError(
                f"checkpoint_dir {self.path} needs fsspec: pip install 'fsspec[{self._scheme}]'"
            ) from None
        try:
            self._store, self._root = url_to_fs(self._url)
        except ImportError as error:
            raise ImportError(f"checkpoint_dir {self.path}: {error}") from None
        except ValueError as error:
            raise ValueError(f"checkpoint_dir {self.path}: {error}") from None

    def take(self, job: str, waits: bool = False) -> bool:
        with self._asking():
            try:
                self._claim.take(job)
            except FileNotFoundError as error:  # no such bucket
                raise Unreachable(f"checkpoint_dir {self.path} can't be written: {_text_of(error)}") from None
        return True

    def release(self) -> None:
        self._claim.release()

    def at_exit(self, call: Callable[[], None]) -> None:
        # Before the interpreter stops its pools of threads, in which clients of stores look up names. That function is
        # CPython's own; none but those pools have another.
        register = getattr(threading, "_register_atexit", None)
        if register is None:
            super().at_exit(call)
        else:
            register(call)

    def path_of(self, name: str) -> str:
        return f"{self.path}/{name}"

    def read(self, trees: Trees, name: str) -> Checkpoint:
        with self._asking(), self._opened(name) as file:
            return checkpoint_file.read_from(trees, file, self._store.size(self._key_of(name)), self.path_of(name))

    def keep_as(self, name: str, other: str) -> None:
        with self._asking():
            self._store.cp_file(self._key_of(name), self._key_of(other))

    def may_pass(self, error: Exception) -> bool:
        return isinstance(error, (Unreachable, ConnectionError, TimeoutError)) or super().may_pass(error)

    def _names(self) -> list[str]:
        with self._asking():
            self._store.invalidate_cache()
            try:
                return [posixpath.basename(key) for key in self._store.ls(self._root, detail=False)]
            except FileNotFoundError:  # there is no folder where there is no object
                return []

    def read_origin(self, name: str) -> Origin:
        with self._asking(), self._opened(name) as file:
            return checkpoint_file.read_origin_from(file)

    def _put(self, name: str, write: Callable[[BinaryIO], None], confirm: Callable[[], None]) -> None:
        file = self._store.open(self._key_of(name), "wb", autocommit=False)
        try:
            write(cast(BinaryIO, _Pieces(file)))
            file.close()
            confirm()
            self._claim.confirm()
            file.commit()
        except InUse:  # the object of this name may be the other job's
            _discard(file)
            raise
        except BaseException:
            _discard(file)
            self._remove(name)  # for a store that needs no completion
            raise

    def _remove(self, name: str) -> None:
        with contextlib.suppress(Exception):
            self._store.rm_file(self._key_of(name))

    def _key_of(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _opened(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._store.open(self._key_of(name), "rb"))

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Returns a context that turns the exceptions of the stores' clients, which all differ, into one-line errors."""
        try:
            yield
        except (FileNotFoundError, Damaged, Unreadable, InUse, Unreachable):
            raise
        except Exception as error:
            raise Unreachable(f"checkpoint_dir {self.path} can't be reached: {_text_of(error)}") from None


def _discard(file: Any) -> None:
    with contextlib.suppress(Exception):
        file.discard()


class _Pieces:
    """Writes to a file in pieces, which the file can send while the next ones are produced: it would buffer a single large write."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> None:
        view = memoryview(data)
        for begin in range(0, len(view), _PIECE):
            self._file.write(view[begin : begin + _PIECE])


def _text_of(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
