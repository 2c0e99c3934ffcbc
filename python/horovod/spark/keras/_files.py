"""Keras models as bytes. Keras is not imported before a model is there: which one, and on which backend, the model says."""

import importlib
import os
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from horovod._keras.packages import backend_of, package_of


class Package(NamedTuple):
    """A package of Keras. It can be pickled.

    Fields:
      name: "keras", or "tf_keras".
      backend: "tensorflow", "jax" or "torch".
      floatx: the type of its floats.
    """

    name: str
    backend: str
    floatx: str

    @staticmethod
    def of(model: Any) -> "Package":
        """Raises ValueError if `model` is not a Keras model."""
        package = package_of(model)
        if package is None or not isinstance(model, package.Model):
            raise ValueError(f"model has to be an instance of keras.Model: Got {type(model).__name__}")
        return Package(package.__name__, backend_of(package), package.backend.floatx())

    def load(self) -> Any:
        """The module, set up as it was."""
        os.environ.setdefault("KERAS_BACKEND", self.backend)
        if self.name == "tf_keras":
            os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
        package = importlib.import_module(self.name)
        package.backend.set_floatx(self.floatx)
        return package

    def horovod(self) -> Any:
        """Horovod's package for it."""
        return importlib.import_module("horovod.tensorflow.keras" if self.name == "tf_keras" else "horovod.keras")

    def model(self, data: bytes, custom_objects: Optional[Mapping[str, Any]] = None) -> Any:
        """The model that these bytes hold, compiled if it was."""
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            path = os.path.join(folder, "model.keras")
            with open(path, "wb") as file:
                file.write(data)
            # An optimizer that has made no step yet has nothing to load.
            warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
            return self.load().models.load_model(path, custom_objects=dict(custom_objects or {}))


def model_bytes(model: Any) -> bytes:
    """The model with its weights, the optimizer and what it was compiled with, as Keras saves it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        with open(path, "rb") as file:
            return file.read()


def scale_rate(model: Any, factor: float) -> None:
    """Multiplies the learning rate, unless it is a schedule."""
    optimizer = model.optimizer
    schedule = getattr(optimizer, "_learning_rate", None)
    if callable(schedule) and hasattr(schedule, "get_config"):
        return
    optimizer.learning_rate = rate_of(model) * factor


def rate_of(model: Any) -> float:
    rate = model.optimizer.learning_rate
    return float(rate.numpy() if hasattr(rate, "numpy") else rate)


def shapes(tensors: Any) -> Optional[list[list[int]]]:
    """Returns the shapes of a model's inputs or outputs, with -1 for the rows of a batch; None if the model does not know them yet."""
    if not tensors:
        return None
    return [[-1 if size is None else int(size) for size in tuple(tensor.shape)] for tensor in tensors]
