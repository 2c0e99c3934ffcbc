"""Trains while rank 2 of the first world is killed in the middle of a step, and replaced: in a tf.function, or with `session` in a graph of
tf.compat.v1. Before each commit rank 0 prints a line of JSON: the world, what averages of the ranks' numbers (from 1) and of their doubles
were, and how often the step has been traced so far. Ends some steps after the job has grown again.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import json
import signal
import sys

import numpy
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod import _ffi

SESSION = "session" in sys.argv
DIE_AT, STEPS_AFTERWARDS, SIZE = 4, 4, 200_000

if SESSION:
    tf.compat.v1.disable_eager_execution()
hvd.init()
traces = 0
weights = tf.Variable(tf.zeros(SIZE))


def kill_if_wanted(wanted):
    if wanted:
        os.kill(os.getpid(), signal.SIGKILL)
    return wanted


def average_of(own, dies):
    """What the weights have grown by, and the average of twice `own`, which is sent while the rank dies."""
    global traces
    traces += 1
    doubles = hvd.allreduce(own * 2, name="doubles")
    dead = tf.ensure_shape(tf.numpy_function(kill_if_wanted, [dies], tf.bool), [])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.convert_to_tensor(weights) * tf.where(dead, float("nan"), own))
    (gradient,) = hvd.DistributedGradientTape(tape).gradient(loss, [weights])
    with tf.control_dependencies([weights.assign_add(gradient)]):
        return tf.identity(gradient), tf.identity(doubles)


def eager_step():
    function = tf.function(average_of)
    return lambda own, dies: [result.numpy() for result in function(tf.fill([SIZE], own), tf.constant(dies))]


def step_of(session):
    own, dies = tf.compat.v1.placeholder(tf.float32, []), tf.compat.v1.placeholder(tf.bool, [])
    results = average_of(tf.fill([SIZE], own), dies)
    session.run(tf.compat.v1.global_variables_initializer())
    return lambda rank, wanted: session.run(results, {own: rank, dies: wanted})


@hvd.elastic.run
def train(state):
    while state.afterwards < STEPS_AFTERWARDS:
        world, size = _ffi.query("epoch"), hvd.size()
        dies = world == 1 and state.step == DIE_AT and hvd.rank() == 2
        gradient, doubles = step(hvd.rank() + 1.0, dies)
        state.step += 1
        state.total += (size + 1) / 2
        state.afterwards += world > 2 and size == 3
        if hvd.rank() == 0:
            seen = dict(world=world, size=size, step=state.step, average=float(gradient[-1]), traces=traces)
            print(json.dumps({**seen, "doubles": float(doubles[0])}), flush=True)
        state.commit()


session = tf.compat.v1.Session() if SESSION else None
step = step_of(session) if SESSION else eager_step()
state = hvd.elastic.TensorFlowState([weights], session=session, step=0, total=0.0, afterwards=0)
train(state)
result = session.run(weights) if SESSION else weights.numpy()
assert numpy.all(result == state.total), (result, state.total)
assert hvd.allgather_object((state.step, state.total)) == [(state.step, state.total)] * hvd.size()
