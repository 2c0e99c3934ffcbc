"""Elastic training with tf.keras: :func:`run`, :class:`KerasState`, and the callbacks that keep it up to date."""

from horovod._keras import callbacks as _impl
from horovod._keras.backends import elastic_for
from horovod._keras.callbacks import made_of
from horovod._keras.state import KerasState, load_checkpoint
from horovod.elastic.iterable import ElasticIterable
from horovod.elastic.sampler import ElasticSampler
from horovod.tensorflow._library import tf

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

_Callback = tf.keras.callbacks.Callback

run = elastic_for(tf.keras).run
CommitStateCallback = made_of(_impl.CommitState, _Callback, "CommitStateCallback", __name__)
UpdateBatchStateCallback = made_of(_impl.UpdateBatchState, _Callback, "UpdateBatchStateCallback", __name__)
UpdateEpochStateCallback = made_of(_impl.UpdateEpochState, _Callback, "UpdateEpochStateCallback", __name__)
