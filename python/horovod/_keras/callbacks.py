"""Callbacks for the classes of one Keras."""

from typing import Any

from horovod._keras.broadcast_callback import BroadcastGlobalVariables
from horovod._keras.checkpoint_callback import BestModel, BestModelOfKeras
from horovod._keras.elastic_callbacks import CommitState, UpdateBatchState, UpdateEpochState
from horovod._keras.learning_rate_callbacks import LearningRateSchedule, LearningRateWarmup
from horovod._keras.metric_callback import MetricAverage

__all__ = [
    "BestModel",
    "BestModelOfKeras",
    "BroadcastGlobalVariables",
    "CommitState",
    "LearningRateSchedule",
    "LearningRateWarmup",
    "MetricAverage",
    "UpdateBatchState",
    "UpdateEpochState",
    "made_of",
]


def made_of(mixin: type, base: Any, name: str, module: str) -> Any:
    """Returns a class of that name: `mixin` before `base`, a callback class of some Keras."""
    attributes: dict[str, Any] = {"__module__": module, "__qualname__": name, "__doc__": mixin.__doc__}
    return type(name, (mixin, base), attributes)
