"""Trains in a tf.function while rank 2 of the first world is killed in the middle of a step, and replaced; `eager`: without tf.function. Before
each commit rank 0 prints a line of JSON: the world, its size, what the gradient was, and how often the step has been traced. Ends some steps after
the job has grown again.

The gradient is the average of the ranks' numbers, from 1.
"""

import json
import os
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod import _ffi

DIE_AT, STEPS_AFTERWARDS, SIZE = 4, 4, 200_000

hvd.init()
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
weights = tf.Variable(tf.zeros(SIZE))
own, dies = tf.Variable(0.0), tf.Variable(False)
traces = 0


def kill_if_wanted(wanted):
    if wanted:
        os.kill(os.getpid(), signal.SIGKILL)
    return numpy.float32(1)


def train_step():
    global traces
    traces += 1
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weights) * own
    (gradient,) = hvd.DistributedGradientTape(tape).gradient(loss, [weights])
    others = hvd.allreduce(own * tf.numpy_function(kill_if_wanted, [dies], tf.float32), op=hvd.Sum, name="others")
    weights.assign_sub(gradient)
    return gradient[-1], others


step = train_step if "eager" in sys.argv else tf.function(train_step)


@hvd.elastic.run
def train(state):
    while state.afterwards < STEPS_AFTERWARDS:
        world, size = _ffi.query("epoch"), hvd.size()
        own.assign(hvd.rank() + 1.0)
        dies.assign(world == 1 and state.step == DIE_AT and hvd.rank() == 2)
        gradient, total = step()
        state.step += 1
        state.expected -= (size + 1) / 2
        state.afterwards += world > 2 and size == 3
        if hvd.rank() == 0:
            seen = dict(world=world, size=size, step=state.step, traces=traces)
            print(json.dumps({**seen, "average": float(gradient), "total": float(total)}), flush=True)
        state.commit()


state = hvd.elastic.TensorFlowState([weights], step=0, expected=0.0, afterwards=0)
train(state)
everything = hvd.allgather_object((state.step, state.expected, float(weights[0]), float(weights[-1])))
assert everything == [(state.step, state.expected, state.expected, state.expected)] * hvd.size(), everything
