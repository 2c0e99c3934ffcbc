"""What estimators ask of a store, whatever kind of storage it has."""

import contextlib
from typing import Any, Callable, Optional

import pyarrow.parquet


class StoreInterface:
    """Where prepared data and the output of runs are, whatever kind of storage that is. A subclass implements all methods
    that raise NotImplementedError.

    Data sets have numbers, so that several can be prepared at once; a run has an id, and a folder with a checkpoint
    and logs.
    """

    def is_parquet_dataset(self, path: str) -> bool:
        """Whether there is a Parquet data set at the path."""
        raise NotImplementedError

    def get_parquet_dataset(self, path: str) -> pyarrow.parquet.ParquetDataset:
        raise NotImplementedError

    def get_train_data_path(self, idx: Optional[int] = None) -> str:
        """Of the training data of the data set with this number; without one: of data that the user has put there."""
        raise NotImplementedError

    def get_val_data_path(self, idx: Optional[int] = None) -> str:
        raise NotImplementedError

    def get_test_data_path(self, idx: Optional[int] = None) -> str:
        raise NotImplementedError

    def saving_runs(self) -> bool:
        """Whether the output of runs is kept."""
        raise NotImplementedError

    def get_runs_path(self) -> str:
        raise NotImplementedError

    def get_run_path(self, run_id: str) -> str:
        raise NotImplementedError

    def get_checkpoint_path(self, run_id: str) -> Optional[str]:
        """Of the folder with the run's checkpoint; None if the output of runs is not kept."""
        raise NotImplementedError

    def get_checkpoints(self, run_id: str, suffix: str = ".ckpt") -> list[str]:
        """The paths of the run's files with this ending, sorted."""
        raise NotImplementedError

    def get_logs_path(self, run_id: str) -> Optional[str]:
        raise NotImplementedError

    def get_checkpoint_filename(self) -> str:
        raise NotImplementedError

    def get_logs_subdir(self) -> str:
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        raise NotImplementedError

    def write_text(self, path: str, text: str) -> None:
        raise NotImplementedError

    def get_local_output_dir_fn(self, run_id: str) -> Callable[[], contextlib.AbstractContextManager[str]]:
        """A function that makes a context manager with the path of a local folder for what a run puts out."""
        raise NotImplementedError

    def sync_fn(self, run_id: str) -> Callable[[str], None]:
        """A function that copies what is new or has changed in a local folder, and below it, to the run's folder. It can be
        pickled."""
        raise NotImplementedError

    def to_remote(self, run_id: str, dataset_idx: Optional[int]) -> "RemoteStore":
        """What a process of the training needs to know of this store. It can be pickled."""
        return RemoteStore(
            train_data_path=self.get_train_data_path(dataset_idx),
            val_data_path=self.get_val_data_path(dataset_idx),
            test_data_path=self.get_test_data_path(dataset_idx),
            saving_runs=self.saving_runs(),
            runs_path=self.get_runs_path(),
            run_path=self.get_run_path(run_id),
            checkpoint_path=self.get_checkpoint_path(run_id),
            logs_path=self.get_logs_path(run_id),
            checkpoint_filename=self.get_checkpoint_filename(),
            logs_subdir=self.get_logs_subdir(),
            get_local_output_dir=self.get_local_output_dir_fn(run_id),
            sync=self.sync_fn(run_id),
        )


class RemoteStore:
    """The paths and functions of one run, as attributes: see :meth:`StoreInterface.to_remote`."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a run's store has no {name}")
