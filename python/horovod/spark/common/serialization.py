"""Saving and loading of estimators and models, as pyspark.ml does it: a folder whose `metadata` has the parameters.

What pyspark can't write as JSON is pickled: load only what you trust. Large values, as models, are in files of their own in `values`,
which do not pass through the memory of Spark's JVM.
"""

import base64
import importlib
import json
import os
import tempfile
import time
from typing import Any

import cloudpickle
from pyspark.ml.util import MLReadable, MLReader, MLWritable, MLWriter

_LARGE = 1 << 16  # bytes of a value for a file of its own
# Those of the place where a training runs: set them again.
_NOT_SAVED = ("backend", "store")


class HorovodParamsWriter(MLWriter):  # type: ignore[misc]  # pyspark has no types here
    """Writes an object with parameters."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        instance = self._instance
        metadata = {
            "class": f"{type(instance).__module__}.{type(instance).__name__}",
            "timestamp": round(time.time() * 1000),
            "sparkVersion": self.sparkSession.version,
            "uid": instance.uid,
        }
        with tempfile.TemporaryDirectory(prefix="horovod-") as folder:
            metadata["paramMap"] = _packed(instance, instance._paramMap, folder)
            metadata["defaultParamMap"] = _packed(instance, instance._defaultParamMap, folder)
            lines = self.sparkSession.createDataFrame([(json.dumps(metadata),)], ["value"])
            lines.coalesce(1).write.text(f"{path}/metadata")  # first: it refuses a folder that is there already
            files = _Files(self.sparkSession, path)
            for name in os.listdir(folder):
                files.put(os.path.join(folder, name), name)


class HorovodParamsReader(MLReader):  # type: ignore[misc]
    """Reads what :class:`HorovodParamsWriter` has written, for one class."""

    def __init__(self, cls: Any) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        metadata = json.loads(self.sparkSession.read.text(f"{path}/metadata").first()[0])
        module, name = metadata["class"].rsplit(".", 1)
        cls = getattr(importlib.import_module(module), name)
        if not issubclass(cls, self._cls):
            raise ValueError(f"{path} holds a {metadata['class']}, not a {self._cls.__module__}.{self._cls.__name__}")
        instance = cls()
        instance._resetUid(metadata["uid"])
        files = _Files(self.sparkSession, path)
        instance._set(**_unpacked(instance, metadata["paramMap"], files))
        instance._setDefault(**_unpacked(instance, metadata["defaultParamMap"], files))
        return instance


class _Files:
    """Files of values in a folder of any file system that Spark knows. They are copied in parts, by Hadoop."""

    def __init__(self, session: Any, path: str) -> None:
        context = session.sparkContext
        self._path = context._jvm.org.apache.hadoop.fs.Path
        self._folder = self._path(f"{path}/values")
        self._system = self._folder.getFileSystem(context._jsc.hadoopConfiguration())

    def put(self, local: str, name: str) -> None:
        self._system.mkdirs(self._folder)
        self._system.copyFromLocalFile(False, True, self._path(f"file://{local}"), self._path(self._folder, name))

    def get(self, name: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="horovod-") as folder:
            local = os.path.join(folder, "value")
            self._system.copyToLocalFile(False, self._path(self._folder, name), self._path(f"file://{local}"), True)
            with open(local, "rb") as file:
                return file.read()


class ParamsWritable(MLWritable):  # type: ignore[misc]
    """Can be saved. A subclass may say how the values of some parameters are pickled."""

    def write(self) -> HorovodParamsWriter:
        return HorovodParamsWriter(self)

    def _pickled(self, name: str, value: Any) -> bytes:
        return cloudpickle.dumps(value)  # type: ignore[no-any-return]


class ParamsReadable(MLReadable):  # type: ignore[misc]
    """Can be loaded. A subclass may say how the values of some parameters are unpickled."""

    @classmethod
    def read(cls) -> HorovodParamsReader:
        return HorovodParamsReader(cls)

    @classmethod
    def _unpickled(cls, name: str, data: bytes) -> Any:
        return cloudpickle.loads(data)


def _packed(instance: Any, values: Any, folder: str) -> dict[str, Any]:
    """The values as JSON has them; large ones are written to files in the folder, whose names are in their place."""
    return {param.name: _packed_value(instance, param.name, value, folder) for param, value in values.items()}


def _packed_value(instance: Any, name: str, value: Any, folder: str) -> Any:
    if value is None or name in _NOT_SAVED:
        return None
    data = instance._pickled(name, value)
    if len(data) < _LARGE:
        return base64.b64encode(data).decode()
    file_name = f"{len(os.listdir(folder))}-{name}"  # a parameter and its default may both be large
    with open(os.path.join(folder, file_name), "wb") as file:
        file.write(data)
    return {"file": file_name}


def _unpacked(instance: Any, values: dict[str, Any], files: _Files) -> dict[str, Any]:
    return {
        name: None if packed is None else instance._unpickled(name, _data_of(packed, files))
        for name, packed in values.items()
    }


def _data_of(packed: Any, files: _Files) -> bytes:
    return files.get(packed["file"]) if isinstance(packed, dict) else base64.b64decode(packed)
