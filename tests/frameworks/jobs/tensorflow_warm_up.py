"""Runs a compiled step before the first run, as Horovod's elastic examples do, and in each reset callback. Asks for a second slot in the file HOSTS,
and ends after three steps with it.

    tensorflow_warm_up.py HOSTS
"""

import sys
from pathlib import Path

import tensorflow as tf

import horovod.tensorflow as hvd

hvd.init()
weights = [tf.Variable(1.0), tf.Variable(2.0)]


@tf.function
def take_step():
    for weight in weights:
        weight.assign_sub(0.1 * hvd.allreduce(weight))


take_step()
state = hvd.elastic.TensorFlowState(variables=weights, together=0)
state.register_reset_callbacks([take_step])


@hvd.elastic.run
def train(state):
    while state.together < 3:
        take_step()
        state.together += hvd.size() == 2
        state.commit()
        Path(sys.argv[1]).write_text("localhost:2\n")


train(state)
print(f"weights {[weight.numpy() for weight in weights]}")
