"""The interface of stores, which estimators use for any kind of storage."""

import contextlib
from typing import Any, Callable, Optional

import pyarrow.parquet


class StoreInterface:
    """The place of prepared data and of the output of runs, in any kind of storage. A subclass implements all methods that
    raise NotImplementedError.

    Data sets have numbers, so that several can be prepared at once. A run has an id, and a folder with a checkpoint and logs.
    """

    def is_parquet_dataset(self, path: str) -> bool:
        """Returns whether there is a Parquet data set.

        Args:
          path: the path of the data set.
        """
        raise NotImplementedError

    def get_parquet_dataset(self, path: str) -> pyarrow.parquet.ParquetDataset:
        """Returns the Parquet data set.

        Args:
          path: the path of the data set.
        """
        raise NotImplementedError

    def get_train_data_path(self, idx: Optional[int] = None) -> str:
        """Returns the path of the training data.

        Args:
          idx: the number of the data set; None: data that the script has put there.
        """
        raise NotImplementedError

    def get_val_data_path(self, idx: Optional[int] = None) -> str:
        """Returns the path of the validation data.

        Args:
          idx: the number of the data set; None: data that the script has put there.
        """
        raise NotImplementedError

    def get_test_data_path(self, idx: Optional[int] = None) -> str:
        """Returns the path of the test data.

        Args:
          idx: the number of the data set; None: data that the script has put there.
        """
        raise NotImplementedError

    def saving_runs(self) -> bool:
        """Returns whether the output of runs is kept."""
        raise NotImplementedError

    def get_runs_path(self) -> str:
        """Returns the path of the folder with the output of all runs."""
        raise NotImplementedError

    def get_run_path(self, run_id: str) -> str:
        """Returns the path of a run's folder.

        Args:
          run_id: the run's id.
        """
        raise NotImplementedError

    def get_checkpoint_path(self, run_id: str) -> Optional[str]:
        """Returns the path of the folder with a run's checkpoint; None if the output of runs is not kept.

        Args:
          run_id: the run's id.
        """
        raise NotImplementedError

    def get_checkpoints(self, run_id: str, suffix: str = ".ckpt") -> list[str]:
        """Returns the paths of a run's checkpoint files, sorted.

        Args:
          run_id: the run's id.
          suffix: the ending of the files' names.
        """
        raise NotImplementedError

    def get_logs_path(self, run_id: str) -> Optional[str]:
        """Returns the path of a run's logs; None if the output of runs is not kept.

        Args:
          run_id: the run's id.
        """
        raise NotImplementedError

    def get_checkpoint_filename(self) -> str:
        """Returns the name of the checkpoint file in a run's folder."""
        raise NotImplementedError

    def get_logs_subdir(self) -> str:
        """Returns the name of the folder of logs in a run's folder."""
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        """Returns whether there is a file or a folder.

        Args:
          path: its path.
        """
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Returns the content of a file.

        Args:
          path: the path of the file.
        """
        raise NotImplementedError

    def write_text(self, path: str, text: str) -> None:
        """Writes a file.

        Args:
          path: the path of the file.
          text: its content.
        """
        raise NotImplementedError

    def get_local_output_dir_fn(self, run_id: str) -> Callable[[], contextlib.AbstractContextManager[str]]:
        """Returns a function that returns a context manager, which gives the path of a local folder for a run's output.

        Args:
          run_id: the run's id.
        """
        raise NotImplementedError

    def sync_fn(self, run_id: str) -> Callable[[str], None]:
        """Returns a picklable function that copies new and changed files of a local folder, and of folders in it, to a run's folder.

        Args:
          run_id: the run's id.
        """
        raise NotImplementedError

    def to_remote(self, run_id: str, dataset_idx: Optional[int]) -> "RemoteStore":
        """Returns a picklable object with everything that a training process needs to know of this store.

        Args:
          run_id: the run's id.
          dataset_idx: the number of the data set.
        """
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
    """The paths and functions of one run, as attributes: see :meth:`StoreInterface.to_remote`.

    Args:
      attributes: the paths and functions, by their names.
    """

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a run's store has no {name}")
