"""Elastic training with Keras: :func:`run`, :class:`KerasState`, and the callbacks that update the state."""

from horovod._keras import callbacks as _impl
from horovod._keras.backends import elastic_for
from horovod._keras.callbacks import made_of
from horovod._keras.state import KerasState, load_checkpoint
from horovod.elastic.iterable import ElasticIterable
from horovod.elastic.sampler import ElasticSampler
from horovod.keras._package import keras

__all__ = [
    "CommitStateCallback",
    "ElasticIterable",
    "ElasticSampler",
    "KerasState",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
    "load_checkpoint",
    "run",
]

_Callback = keras.callbacks.Callback

run = elastic_for(keras).run
CommitStateCallback = made_of(_impl.CommitState, _Callback, "CommitStateCallback", __name__)
UpdateBatchStateCallback = made_of(_impl.UpdateBatchState, _Callback, "UpdateBatchStateCallback", __name__)
UpdateEpochStateCallback = made_of(_impl.UpdateEpochState, _Callback, "UpdateEpochStateCallback", __name__)
