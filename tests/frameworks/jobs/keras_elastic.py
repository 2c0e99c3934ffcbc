"""Trains with fit() while the job changes: `resize HOSTS` has rank 0 write the file that says how many workers there are, 2, then 4, then 3;
`kill` has rank 2 of the first world killed in the middle of an epoch, and replaced. Rank 0 prints a line of JSON for each epoch: the sizes of
the worlds in which its batches were trained, and the samples in their order. It ends with an epoch that was all in a world of 3 after that.
`legacy`: with a legacy optimizer of Keras 2.

The one weight begins at 0 and its gradient is the mean of the samples' numbers, so that it tells by which size gradients were averaged.
"""

import json
import os
import signal
import sys

import numpy

if os.environ.get("TF_USE_LEGACY_KERAS") == "1" or "tf.keras" in sys.argv:
    import tensorflow as tf

    import horovod.tensorflow.keras as hvd

    keras = tf.keras
else:
    import keras

    import horovod.keras as hvd
from horovod import _ffi

RESIZE = sys.argv[sys.argv.index("resize") + 1] if "resize" in sys.argv else None
SIZES = [2, 4, 3, 3] if RESIZE else [3, 2, 3, 3]  # that the job has in this order, perhaps others in between
SAMPLES, RATE, DIE_AT = 48, 1 / 1024, 4

hvd.init()
traces = 0


def loss(wanted, got):
    global traces
    traces += 1
    return wanted * got


def compiled():
    model = keras.Sequential(
        [keras.layers.InputLayer((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")]
    )
    optimizers = keras.optimizers.legacy if "legacy" in sys.argv else keras.optimizers
    model.compile(hvd.DistributedOptimizer(optimizers.SGD(RATE)), loss)
    return model


def world():
    return _ffi.query("epoch")


def dealt(sampler):
    """The samples that are dealt to this rank, one a batch."""
    for index in sampler:
        yield numpy.ones((1, 1), "float32"), numpy.full((1, 1), index, "float32")


class Samples(keras.callbacks.Callback):
    """Notes what all ranks have trained on, and changes the world. Stands before the commit."""

    def __init__(self, state):
        super().__init__()
        self.state = state

    def on_epoch_begin(self, epoch, logs=None):
        self.dealt = list(self.state.sampler)

    def on_batch_end(self, batch, logs=None):
        state = self.state
        if not RESIZE and world() == 1 and state.epoch == 1 and batch == DIE_AT and hvd.rank() == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        together = numpy.asarray(hvd.allgather(numpy.array([self.dealt[batch]]))).tolist()
        state.sampler.record_batch(batch, 1)
        state.batches = [*state.batches, together]
        state.expected -= RATE * sum(together) / len(together)
        if state.changes < 2 and hvd.size() == SIZES[state.changes + 1]:
            state.changes += 1
        if RESIZE and hvd.rank() == 0 and batch == 2 and hvd.size() == SIZES[state.changes]:
            self.ask_for(SIZES[state.changes + 1])

    def ask_for(self, size):
        with open(RESIZE + ".new", "w") as file:
            file.write(f"localhost:{size}\n")
        os.replace(RESIZE + ".new", RESIZE)

    def on_epoch_end(self, epoch, logs=None):
        state = self.state
        if hvd.rank() == 0:
            seen = dict(epoch=state.epoch, fits=epoch, sizes=[len(each) for each in state.batches], traces=traces)
            print(json.dumps({**seen, "batches": state.batches}), flush=True)
        state.ended += state.changes == 2 and all(len(each) == 3 for each in state.batches)
        state.batches = []
        state.sampler.set_epoch(epoch + 1)


@hvd.elastic.run
def train(state):
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.elastic.UpdateEpochStateCallback(state),
        Samples(state),
        hvd.elastic.CommitStateCallback(state),
    ]
    while state.ended < 1:
        epochs = dict(initial_epoch=state.epoch, epochs=state.epoch + 1)
        steps = len(state.sampler)
        state.model.fit(dealt(state.sampler), steps_per_epoch=steps, verbose=0, callbacks=callbacks, **epochs)


sampler = hvd.elastic.ElasticSampler(range(SAMPLES), shuffle=True)
state = hvd.elastic.KerasState(compiled(), sampler=sampler, epoch=0, batches=[], changes=0, ended=0, expected=0.0)
train(state)
weight = float(state.model.get_weights()[0][0, 0])
assert abs(weight - state.expected) < 1e-4, (weight, state.expected)
everything = numpy.asarray(hvd.allgather(numpy.array([[weight, state.expected, state.epoch]])))
assert (everything == everything[0]).all(), everything
