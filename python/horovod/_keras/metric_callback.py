"""The callback that averages metrics over the ranks."""

import sys
import warnings
from collections.abc import Mapping
from typing import Any, Optional

import numpy

import horovod.numpy as hvd
from horovod._keras import tensors

# Callbacks that change the training depending on metrics: with different values, the ranks would diverge.
_DECIDING = ("EarlyStopping", "ReduceLROnPlateau")
_RECORDING = ("ModelCheckpoint", "BackupAndRestore", "CSVLogger", "TensorBoard")
_ORDER = "MetricAverageCallback must stand before {} in the list of callbacks, which else sees this rank's metrics."

# A mixin: the next base class is Callback of some Keras.
_Behind: Any = object


class MetricAverage(_Behind):  # type: ignore[misc]
    """Averages the metrics of an epoch over the ranks, for all callbacks after it in the list. If the ranks have seen different
    numbers of samples, their metrics are weighted by these numbers. All ranks must have the same metrics.

    Args:
      device: not used.

    Raises:
      ValueError: in fit(), EarlyStopping or ReduceLROnPlateau precede it in the list. They would act on different metrics,
        so the ranks would diverge. If a callback that records metrics precedes it, a warning is given instead. At the end of
        an epoch: the ranks have different metrics.
    """

    model: Any

    def __init__(self, device: str = "") -> None:
        super().__init__()
        self.device = device
        self._samples: dict[bool, float] = {}  # of the epoch, by whether they are those of validation

    def set_model(self, model: Any) -> None:
        """Checks the order of the callbacks. Keras calls it.

        Args:
          model: the model.
        """
        _check_order(self, sys._getframe(1).f_locals.get("self"))
        super().set_model(model)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Forgets the numbers of samples of the previous epoch. Keras calls it.

        Args:
          epoch, logs: not used.
        """
        self._samples = {}

    def on_test_begin(self, logs: Any = None) -> None:
        """Counts the training's samples, before the validation's metrics take the place of the training's. Keras calls it.

        Args:
          logs: not used.
        """
        # The validation within fit(): its metrics take the place of the training's.
        self._samples.setdefault(False, _samples_of(self.model))

    def on_test_end(self, logs: Any = None) -> None:
        """Counts the validation's samples. Keras calls it.

        Args:
          logs: not used.
        """
        self._samples[True] = _samples_of(self.model)

    def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        """Replaces the metrics in `logs` by their averages. Keras calls it.

        Args:
          epoch: not used.
          logs: the metrics of the epoch.
        """
        self._samples.setdefault(False, _samples_of(self.model))
        names = _names_on_all_ranks(logs or {})
        if logs and names:
            logs.update(_averaged(logs, names, self._samples))


def _check_order(callback: Any, container: Any) -> None:
    """Checks the position of `callback` in the list of callbacks `container`."""
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
    """Returns how many samples the model's loss is averaged over; 0 if that is unknown."""
    tensors.take_from_training(model)
    means = [metric for metric in model.metrics if metric.name == "loss" and hasattr(metric, "count")]
    return float(tensors.values_of(model, [means[0].count])[0]) if means else 0.0


def _names_on_all_ranks(logs: Mapping[str, Any]) -> list[str]:
    """Returns the names of the metrics that are numbers, sorted. Raises ValueError, on all ranks, if they are others elsewhere."""
    names = sorted(name for name, value in logs.items() if numpy.ndim(value) == 0 and _is_number(value))
    of_all = hvd.allgather_object(names, name="horovod.keras.metric_names")
    for rank, others in enumerate(of_all):
        if others != of_all[0]:
            raise ValueError(
                f"MetricAverageCallback: the ranks have different metrics: rank 0 {of_all[0]}, rank {rank} {others}; compile the "
                "same metrics, and give validation data, on all ranks"
            )
    return names


def _averaged(logs: Mapping[str, Any], names: list[str], samples: Mapping[bool, float]) -> dict[str, float]:
    """Returns these numbers in `logs`, averaged over the ranks."""
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
