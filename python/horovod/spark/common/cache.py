"""The data sets that this process has written to stores, by DataFrame."""

import contextlib
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, Optional

from horovod.spark.common.store import Store


class DataProperties(NamedTuple):
    """What is known of a data set: numbers of rows, each column's metadata, and the mean size of a row in bytes."""

    train_rows: int
    val_rows: int
    metadata: dict[str, Any]
    avg_row_size: float


class TrainingDataCache:
    """The numbers of data sets, by DataFrame, store and validation. Trainings at the same time have different numbers; one that
    is no longer used is given to the next DataFrame, so that a store does not grow.

    Hold `lock` while you look for a number and write the data.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._users: Counter[Hashable] = Counter()
        self._keys: dict[int, Hashable] = {}
        self._properties: dict[int, DataProperties] = {}

    @staticmethod
    def create_key(df: Any, store: Store, *others: Hashable) -> Hashable:
        """Returns the key of this DataFrame in this store; `others`: further parts of the key. The key holds the DataFrame, so that no other
        one gets its identity."""
        return df, store.get_train_data_path(), store.get_val_data_path(), others

    @contextlib.contextmanager
    def use_key(self, key: Hashable) -> Iterator[None]:
        """Within it the data set of the key stays. It takes `lock` at its beginning and end."""
        self._count(key, 1)
        try:
            yield
        finally:
            self._count(key, -1)

    def _count(self, key: Hashable, change: int) -> None:
        with self.lock:
            self._users[key] += change

    def find(self, key: Hashable, store: Store, has_validation: bool) -> Optional[int]:
        """The number of the data set that was written for the key, if it is still there."""
        for number, owner in self._keys.items():
            if owner == key and number in self._properties and _is_there(store, number, has_validation):
                return number
        return None

    def next_number(self, key: Hashable) -> int:
        """The lowest number that is not in use; it is the key's from now on."""
        number = 0
        while self._users[self._keys.get(number)] > 0:
            number += 1
        self._keys[number] = key
        self._properties.pop(number, None)
        return number

    def properties(self, number: int) -> DataProperties:
        return self._properties[number]

    def set_properties(self, number: int, properties: DataProperties) -> None:
        self._properties[number] = properties

    def clear(self) -> None:
        """Forgets all; files stay."""
        with self.lock:
            self._users.clear()
            self._keys.clear()
            self._properties.clear()


def _is_there(store: Store, number: int, has_validation: bool) -> bool:
    return store.is_parquet_dataset(store.get_train_data_path(number)) and (
        not has_validation or store.is_parquet_dataset(store.get_val_data_path(number))
    )
