"""The callback that averages metrics over the ranks."""

import sys
import warnings
from collections.abc import Mapping
from typing import Any, Optional

import numpy

import horovod.numpy as hvd
from horovod._keras import tensors

# Callbacks that change the training by what they see: on different values, ranks would part.
_DECIDING = ("EarlyStopping", "ReduceLROnPlateau")
_RECORDING = ("ModelCheckpoint", "BackupAndRestore", "CSVLogger", "TensorBoard")
_ORDER = "MetricAverageCallback must stand before {} in the list of callbacks, which else sees this rank's metrics."

# A mixin: the next base class is Callback of some Keras.
_Behind: Any = object


class MetricAverage(_Behind):  # type: ignore[misc]
    """Averages the metrics of an epoch over the ranks, for all callbacks behind it in the list. Where the
    ranks have seen different numbers of samples, each counts by that number.

    Args:
      device: not used.

    Raises ValueError in fit() if EarlyStopping or ReduceLROnPlateau stand before it: ranks would stop, or
    change their learning rate, by themselves. Warns if it stands behind a callback that records metrics.
    """

    model: Any

    def __init__(self, device: str = "") -> None:
        super().__init__()
        self.device = device
        self._samples: dict[bool, float] = {}  # of the epoch, by whether they are those of validation

    def set_model(self, model: Any) -> None:
        _check_order(self, sys._getframe(1).f_locals.get("self"))
        super().set_model(model)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._samples = {}

    def on_test_begin(self, logs: Any = None) -> None:
        # The validation within fit(): its metrics take the place of the training's.
        self._samples.setdefault(False, _samples_of(self.model))

    def on_test_end(self, logs: Any = None) -> None:
        self._samples[True] = _samples_of(self.model)

    def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        self._samples.setdefault(False, _samples_of(self.model))
        if logs:
            logs.update(_averaged(logs, self._samples))


def _check_order(callback: Any, container: Any) -> None:
    """`container`: the list of callbacks that sets the model of each."""
    before: list[str] = []
    for other in getattr(container, "callbacks", None) or ():
        if other is callback:
            break
        before += [base.__name__ for base in type(other).__mro__]
    deciding = [name for name in _DECIDING if name in before]
    recording = [name for name in _RECORDING if name in before]
    if deciding:
        raise ValueError(_ORDER.format(deciding[0]))
    if recording:
        warnings.warn(_ORDER.format(recording[0]), stacklevel=2)


def _samples_of(model: Any) -> float:
    """How many samples the model's loss has been averaged over; 0 if that is not known."""
    tensors.take_from_training(model)
    means = [metric for metric in model.metrics if metric.name == "loss" and hasattr(metric, "count")]
    return float(tensors.values_of(model, [means[0].count])[0]) if means else 0.0


def _averaged(logs: Mapping[str, Any], samples: Mapping[bool, float]) -> dict[str, float]:
    """Those of `logs` that are numbers, averaged over the ranks."""
    names = sorted(name for name, value in logs.items() if numpy.ndim(value) == 0 and _is_number(value))
    weights = numpy.array([samples.get(name.startswith("val_"), 0.0) for name in names])
    values = numpy.array([float(logs[name]) for name in names])
    weights, values = numpy.atleast_1d(weights), numpy.atleast_1d(values)
    sums = hvd.allreduce(numpy.stack([weights * values, weights, values]), op=hvd.Sum, name="horovod.keras.metrics")
    weighted, total, plain = sums
    averages = numpy.where(total > 0, weighted / numpy.where(total > 0, total, 1), plain / hvd.size())
    return dict(zip(names, averages.tolist()))


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
