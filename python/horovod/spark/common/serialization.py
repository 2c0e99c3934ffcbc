"""Saving and loading of estimators and models, as pyspark.ml does it: a folder whose `metadata` has the parameters.

What pyspark can't write as JSON is pickled: load only what you trust.
"""

import base64
import importlib
import json
import time
from typing import Any

import cloudpickle
from pyspark.ml.util import MLReadable, MLReader, MLWritable, MLWriter

# Those of the place where a training runs: set them again.
_NOT_SAVED = ("backend", "store")


class ParamsWriter(MLWriter):  # type: ignore[misc]  # pyspark has no types here
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
            "paramMap": _packed(instance, instance._paramMap),
            "defaultParamMap": _packed(instance, instance._defaultParamMap),
        }
        lines = self.sparkSession.createDataFrame([(json.dumps(metadata),)], ["value"])
        lines.coalesce(1).write.text(f"{path}/metadata")


class ParamsReader(MLReader):  # type: ignore[misc]
    """Reads what :class:`ParamsWriter` has written, for one class."""

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
        instance._set(**_unpacked(instance, metadata["paramMap"]))
        instance._setDefault(**_unpacked(instance, metadata["defaultParamMap"]))
        return instance


class Saved(MLWritable, MLReadable):  # type: ignore[misc]
    """Can be saved and loaded. A subclass may say how the values of some parameters are pickled."""

    def write(self) -> ParamsWriter:
        return ParamsWriter(self)

    @classmethod
    def read(cls) -> ParamsReader:
        return ParamsReader(cls)

    def _pickled(self, name: str, value: Any) -> bytes:
        return cloudpickle.dumps(value)  # type: ignore[no-any-return]

    @classmethod
    def _unpickled(cls, name: str, data: bytes) -> Any:
        return cloudpickle.loads(data)


def _packed(instance: Any, values: Any) -> dict[str, Any]:
    return {
        param.name: None
        if value is None or param.name in _NOT_SAVED
        else base64.b64encode(instance._pickled(param.name, value)).decode()
        for param, value in values.items()
    }


def _unpacked(instance: Any, values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if text is None else instance._unpickled(name, base64.b64decode(text))
        for name, text in values.items()
    }
