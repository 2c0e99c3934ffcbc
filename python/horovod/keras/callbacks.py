"""Callbacks for Keras."""

from horovod._keras import callbacks as _impl
from horovod._keras.callbacks import made_of
from horovod.keras._package import keras

__all__ = [
    "BestModelCheckpoint",
    "BroadcastGlobalVariablesCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
]

_Callback = keras.callbacks.Callback
_Checkpoint = keras.callbacks.ModelCheckpoint

BroadcastGlobalVariablesCallback = made_of(
    _impl.BroadcastGlobalVariables, _Callback, "BroadcastGlobalVariablesCallback", __name__
)
MetricAverageCallback = made_of(_impl.MetricAverage, _Callback, "MetricAverageCallback", __name__)
LearningRateScheduleCallback = made_of(_impl.LearningRateSchedule, _Callback, "LearningRateScheduleCallback", __name__)
LearningRateWarmupCallback = made_of(_impl.LearningRateWarmup, _Callback, "LearningRateWarmupCallback", __name__)
BestModelCheckpoint = made_of(_impl.BestModelOfKeras, _Checkpoint, "BestModelCheckpoint", __name__)
