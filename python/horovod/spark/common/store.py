"""Stores of prepared data, checkpoints and logs, in a folder of any file system that fsspec supports."""

import contextlib
import functools
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Callable, Optional

import fsspec
import pyarrow.parquet
from fsspec.core import split_protocol

from horovod.common import _file_urls
from horovod.spark.common._store_interface import RemoteStore, StoreInterface

__all__ = [
    "AbstractFilesystemStore",
    "DBFSLocalStore",
    "FilesystemStore",
    "HDFSStore",
    "LocalStore",
    "RemoteStore",
    "Store",
]

_DBFS_PREFIXES = dict.fromkeys(["/dbfs/", "dbfs:/", "file:/dbfs/", "file:///dbfs/", "file://localhost/dbfs/"], "/dbfs/")


_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"  # set on Databricks


class Store(StoreInterface):
    __doc__ = StoreInterface.__doc__

    @staticmethod
    def create(prefix_path: str, *args: Any, **kwargs: Any) -> "Store":
        """Returns the store for a path or URL: :class:`HDFSStore` for hdfs://, :class:`DBFSLocalStore` for paths of DBFS on
        Databricks, and otherwise :class:`FilesystemStore`.

        Args:
          prefix_path: the path or URL.
          args, kwargs: further arguments of the store.

        Example:
          >>> import tempfile
          >>> from horovod.spark.common.store import Store
          >>> store = Store.create(tempfile.mkdtemp())
          >>> store.get_run_path("night").endswith("/runs/night")
          True
        """
        if HDFSStore.matches(prefix_path):
            return HDFSStore(prefix_path, *args, **kwargs)
        if os.environ.get(_DATABRICKS) and DBFSLocalStore.matches_dbfs(prefix_path):
            return DBFSLocalStore(prefix_path, *args, **kwargs)
        return FilesystemStore(prefix_path, *args, **kwargs)


class AbstractFilesystemStore(Store):
    """A store in a folder. A subclass has the fsspec file system, `fs`, and translates paths.

    Args:
      prefix_path: the path or URL of the folder.
      train_path: the path of training data, by default `intermediate_train_data` in the folder.
      val_path: the path of validation data, by default `intermediate_val_data` in the folder.
      test_path: the path of test data, by default `intermediate_test_data` in the folder.
      runs_path: the path of the output of runs, by default `runs` in the folder.
      save_runs: whether checkpoints and logs are kept.
      storage_options: arguments of the file system, such as credentials.
      checkpoint_filename: the name of checkpoint files, by default `checkpoint`.
    """

    def __init__(
        self,
        prefix_path: str,
        train_path: Optional[str] = None,
        val_path: Optional[str] = None,
        test_path: Optional[str] = None,
        runs_path: Optional[str] = None,
        save_runs: bool = True,
        storage_options: Optional[dict[str, Any]] = None,
        checkpoint_filename: Optional[str] = None,
    ) -> None:
        self.prefix_path = self.get_full_path(prefix_path)
        self.storage_options = storage_options
        self.checkpoint_filename = checkpoint_filename or "checkpoint"
        self._train_path = self._path_or(train_path, "intermediate_train_data")
        self._val_path = self._path_or(val_path, "intermediate_val_data")
        self._test_path = self._path_or(test_path, "intermediate_test_data")
        self._runs_path = self._path_or(runs_path, "runs")
        self._save_runs = save_runs

    @property
    def fs(self) -> fsspec.AbstractFileSystem:
        """The fsspec file system."""
        raise NotImplementedError

    def get_full_path(self, path: str) -> str:
        """Returns the URL of a path, in a form that Spark understands too.

        Args:
          path: a path or URL.
        """
        raise NotImplementedError

    def get_localized_path(self, path: str) -> str:
        """Returns the path of a URL, in the form that `fs` takes.

        Args:
          path: a path or URL.
        """
        raise NotImplementedError

    def get_full_path_fn(self) -> Callable[[str], str]:
        """Returns the function :meth:`get_full_path`."""
        return self.get_full_path

    def get_filesystem(self) -> fsspec.AbstractFileSystem:
        """Returns the fsspec file system."""
        return self.fs

    def _path_or(self, path: Optional[str], name: str) -> str:
        return os.path.join(self.prefix_path, name) if path is None else self.get_full_path(path)

    def get_train_data_path(self, idx: Optional[int] = None) -> str:
        return _numbered(self._train_path, idx)

    def get_val_data_path(self, idx: Optional[int] = None) -> str:
        return _numbered(self._val_path, idx)

    def get_test_data_path(self, idx: Optional[int] = None) -> str:
        return _numbered(self._test_path, idx)

    def get_data_metadata_path(self, path: str) -> str:
        """Always raises: there is no file of metadata beside the data.

        Args:
          path: not used.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            "Store.get_data_metadata_path: there is no such file; get_simple_meta_from_parquet reads the metadata from the data"
        )

    def read_serialized_keras_model(self, ckpt_path: str, model: Any, custom_objects: Any) -> str:
        """Always raises: models do not travel as texts.

        Args:
          ckpt_path, model, custom_objects: not used.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            "Store.read_serialized_keras_model: models do not travel as texts; keras.models.load_model reads the file that "
            "get_checkpoint_path names"
        )

    def saving_runs(self) -> bool:
        return self._save_runs

    def get_runs_path(self) -> str:
        return self._runs_path

    def get_run_path(self, run_id: str) -> str:
        return os.path.join(self.get_runs_path(), run_id)

    def get_checkpoint_path(self, run_id: str) -> Optional[str]:
        return self.get_run_path(run_id) if self._save_runs else None

    def get_checkpoints(self, run_id: str, suffix: str = ".ckpt") -> list[str]:
        path = self.get_checkpoint_path(run_id)
        if path is None:
            return []
        return sorted(name for name in self.fs.ls(self.get_localized_path(path), detail=False) if name.endswith(suffix))

    def get_logs_path(self, run_id: str) -> Optional[str]:
        return os.path.join(self.get_run_path(run_id), self.get_logs_subdir()) if self._save_runs else None

    def get_checkpoint_filename(self) -> str:
        return self.checkpoint_filename

    def get_logs_subdir(self) -> str:
        return "logs"

    def exists(self, path: str) -> bool:
        return bool(self.fs.exists(self.get_localized_path(path)))

    def read(self, path: str) -> bytes:
        with self.fs.open(self.get_localized_path(path), "rb") as file:
            return bytes(file.read())

    def write_text(self, path: str, text: str) -> None:
        with self.fs.open(self.get_localized_path(path), "w") as file:
            file.write(text)

    def is_parquet_dataset(self, path: str) -> bool:
        try:
            return bool(self.get_parquet_dataset(path).files)
        except (OSError, ValueError):  # nothing there, or something else
            return False

    def get_parquet_dataset(self, path: str) -> pyarrow.parquet.ParquetDataset:
        return pyarrow.parquet.ParquetDataset(self.get_localized_path(path), filesystem=self.fs)

    def get_local_output_dir_fn(self, run_id: str) -> Callable[[], contextlib.AbstractContextManager[str]]:
        return tempfile.TemporaryDirectory

    def sync_fn(self, run_id: str) -> Callable[[str], None]:
        return _Upload(self._file_system_fn(), self.get_localized_path(self.get_run_path(run_id)))

    def _file_system_fn(self) -> Callable[[], fsspec.AbstractFileSystem]:
        """Returns a picklable function that makes `fs` in another process."""
        raise NotImplementedError


def _numbered(path: str, number: Optional[int]) -> str:
    return path if number is None else f"{path}.{number}"


class _Upload:
    """Copies the files of a local folder that are new or have changed since the last call."""

    def __init__(self, file_system_fn: Callable[[], fsspec.AbstractFileSystem], target: str) -> None:
        self._file_system_fn, self._target = file_system_fn, target
        self._copied: dict[Path, tuple[int, int]] = {}

    def __call__(self, local_run_path: str) -> None:
        file_system = self._file_system_fn()
        root = Path(local_run_path)
        for path in sorted(root.rglob("*")):
            if not path.is_file():
                continue
            state = path.stat()
            seen = (state.st_mtime_ns, state.st_size)
            if self._copied.get(path) != seen:
                target = f"{self._target}/{path.relative_to(root)}"
                file_system.makedirs(os.path.dirname(target), exist_ok=True)
                file_system.put_file(str(path), target)
                self._copied[path] = seen


class FilesystemStore(AbstractFilesystemStore):
    """A store at a path, or at a URL that fsspec supports: file://, s3://, gs://, abfs://, memory:// and others, if the packages
    that they need are installed.

    Args:
      prefix_path: the path or URL of the folder.
      args, kwargs: further arguments, as for :class:`AbstractFilesystemStore`.

    Raises:
      ValueError: the URL is of a kind that fsspec does not know, or of a file on another host.
    """

    def __init__(self, prefix_path: str, *args: Any, **kwargs: Any) -> None:
        self._url = prefix_path
        super().__init__(prefix_path, *args, **kwargs)
        self._fs = self._file_system_fn()()
        self.protocol = split_protocol(prefix_path)[0]

    @property
    def fs(self) -> fsspec.AbstractFileSystem:
        return self._fs

    def _file_system_fn(self) -> Callable[[], fsspec.AbstractFileSystem]:
        return functools.partial(_file_system_of, self._url, self.storage_options or {})

    def get_full_path(self, path: str) -> str:
        if split_protocol(path)[0] is None:
            return f"file://{os.path.abspath(path)}"  # nothing is quoted: neither Spark nor fsspec would undo it
        of_file = _file_urls.path_of(path)
        return path if of_file is None else f"file://{of_file}"

    def get_localized_path(self, path: str) -> str:
        return str(self.fs._strip_protocol(_file_urls.path_of(path) or path))

    def copy(self, lpath: str, rpath: str, recursive: bool = False, **kwargs: Any) -> None:
        """Copies a local file, or the contents of a local folder, into the store.

        Args:
          lpath: the path of the file or folder.
          rpath: the path or URL in the store that it gets.
          recursive: whether a folder is copied with all that is in it.
          kwargs: further arguments of fsspec's put_file.

        Raises:
          IsADirectoryError: `lpath` is a folder, and `recursive` is False.
        """
        source, target = Path(lpath), self.get_localized_path(rpath)
        if source.is_dir() and not recursive:
            raise IsADirectoryError(f"{lpath} is a folder: copy it with recursive=True")
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.is_file():
                place = f"{target}/{path.relative_to(source)}" if path != source else target
                self.fs.makedirs(os.path.dirname(place), exist_ok=True)
                self.fs.put_file(str(path), place, **kwargs)

    @classmethod
    def matches(cls, path: str) -> bool:
        """Returns True: this store takes any path.

        Args:
          path: a path or URL.
        """
        return True


def _file_system_of(url: str, options: dict[str, Any]) -> fsspec.AbstractFileSystem:
    return fsspec.core.url_to_fs(url, **options)[0]


class LocalStore(FilesystemStore):
    """The older name of :class:`FilesystemStore`."""


class HDFSStore(AbstractFilesystemStore):
    """A store in HDFS. pyarrow connects to it at the first use, and needs Hadoop's libhdfs.

    Args:
      prefix_path: "hdfs://HOST:PORT/PATH", "hdfs:///PATH" or "/PATH".
      host, port: the name node's address, by default that of the URL, or of Hadoop's configuration.
      user: the user who connects.
      kerb_ticket: the path of the Kerberos ticket cache.
      driver: not used; it is for older versions of pyarrow.
      extra_conf: further settings of Hadoop.
      args, kwargs: further arguments, as for :class:`AbstractFilesystemStore`.

    Raises:
      ValueError: the URL is of another kind, or has no path.
    """

    FS_PREFIX = "hdfs://"
    URL_PATTERN = re.compile(r"^(?:(.+://))?(?:([^/:]+))?(?::([0-9]+))?(?:(/.*))?$")

    def __init__(
        self,
        prefix_path: str,
        host: Optional[str] = None,
        port: Optional[int] = None,
        user: Optional[str] = None,
        kerb_ticket: Optional[str] = None,
        driver: str = "libhdfs",
        extra_conf: Optional[dict[str, str]] = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        prefix, url_host, url_port, path, path_offset = self.parse_url(prefix_path)
        if prefix not in (None, self.FS_PREFIX):
            raise ValueError(f"{prefix_path}: a store in HDFS is at {self.FS_PREFIX}..., not at {prefix}...")
        if not path:
            raise ValueError(f"{prefix_path}: there is no path in this URL")
        self._url_prefix = prefix_path[:path_offset] if prefix else self.FS_PREFIX
        self._hdfs_kwargs = {
            "host": host or url_host or "default",
            "port": port or url_port or 0,
            "user": user,
            "kerb_ticket": kerb_ticket,
            "extra_conf": extra_conf,
        }
        super().__init__(prefix_path, *args, **kwargs)
        if self.storage_options is None:  # for processes that have only the URL
            of_the_user = {"user": user, "kerb_ticket": kerb_ticket, "extra_conf": extra_conf}
            self.storage_options = {name: value for name, value in of_the_user.items() if value is not None}

    def parse_url(self, url: str) -> tuple[Optional[str], Optional[str], Optional[int], Optional[str], int]:
        """Splits a URL.

        Args:
          url: the URL.

        Returns:
          "hdfs://" or None, host, port, path, and the position of the path in the URL.

        Raises:
          ValueError: it is not a URL of HDFS.
        """
        match = self.URL_PATTERN.match(url)
        if match is None:
            raise ValueError(f"{url} is not a URL of HDFS: hdfs://HOST:PORT/PATH")
        prefix, host, port, path = match.groups()
        return prefix, host, None if port is None else int(port), path, match.start(4)

    @property
    def fs(self) -> fsspec.AbstractFileSystem:
        return self._file_system_fn()()

    def _file_system_fn(self) -> Callable[[], fsspec.AbstractFileSystem]:
        return functools.partial(fsspec.filesystem, "hdfs", **self._hdfs_kwargs)

    def get_full_path(self, path: str) -> str:
        return path if self.matches(path) else self._url_prefix + path

    def get_localized_path(self, path: str) -> str:
        return path[len(self._url_prefix) :] if self.matches(path) else path

    @classmethod
    def matches(cls, path: str) -> bool:
        """Returns whether a path is a URL of HDFS.

        Args:
          path: a path or URL.
        """
        return path.startswith(cls.FS_PREFIX)


class DBFSLocalStore(FilesystemStore):
    """A store in the file system of Databricks, through the folder /dbfs in which it is mounted.

    Args:
      prefix_path: "/dbfs/PATH", "dbfs:/PATH", "file:/dbfs/PATH" or "file:///dbfs/PATH".
      args, kwargs: further arguments, as for :class:`AbstractFilesystemStore`.

    Raises:
      ValueError: the path has another form.
    """

    def __init__(self, prefix_path: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(self.normalize_path(prefix_path), *args, **kwargs)

    @classmethod
    def matches_dbfs(cls, path: str) -> bool:
        """Returns whether a path is one of DBFS.

        Args:
          path: a path or URL.
        """
        return not path.startswith("dbfs://") and path.startswith(tuple(_DBFS_PREFIXES))

    @classmethod
    def normalize_path(cls, path: str) -> str:
        """Returns a path of DBFS as "/dbfs/...".

        Args:
          path: the path, in any of the forms that the class takes.

        Raises:
          ValueError: the path has another form.
        """
        if cls.matches_dbfs(path):
            for prefix, local in _DBFS_PREFIXES.items():
                if path.startswith(prefix):
                    return local + path[len(prefix) :]
        raise ValueError(f"{path} is not a path of DBFS: /dbfs/..., dbfs:/..., file:/dbfs/... or file:///dbfs/...")

    def get_full_path(self, path: str) -> str:
        return "file://" + self.normalize_path(path)

    def get_localized_path(self, path: str) -> str:
        return self.normalize_path(path)

    def get_checkpoint_filename(self) -> str:
        return "checkpoint.tf"
