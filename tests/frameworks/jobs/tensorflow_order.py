"""1,000 random programs of TensorFlow's operations, traced in an order of each rank's own, on one inter-op thread."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import random

import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.tensorflow import mpi_ops

PROGRAMS, FUNCTIONS, OPERATIONS = 1000, 20, 8

tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
hvd.init()
rank, size = hvd.rank(), hvd.size()
total = size * (size + 1) // 2  # of rank + 1


def operation(kind, value, name):
    if kind == "allreduce":
        return mpi_ops._allreduce(value, name=name)
    if kind == "grouped":
        first, second = mpi_ops._grouped_allreduce([value, value * 2], name=name)
        return first + second
    if kind == "gather":
        return tf.reduce_sum(mpi_ops.allgather(tf.reshape(value, [1]), name=name))
    return mpi_ops.broadcast(value, size - 1, name=name)


def program(number):
    """A function whose operations stand in another order on every rank."""
    shared, own = random.Random(number), random.Random(number * size + rank)
    steps = [(shared.choice(["allreduce", "grouped", "gather", "send"]), f"{number}.{i}") for i in range(OPERATIONS)]

    @tf.function
    def run(scale):
        results = {name: operation(kind, scale * (rank + 1), name) for kind, name in own.sample(steps, len(steps))}
        return [results[name] for _, name in steps]

    return run, [kind for kind, _ in steps]


def expected(kind, scale):
    return scale * {"allreduce": total, "grouped": 3 * total, "gather": total, "send": size}[kind]


functions = [program(number) for number in range(FUNCTIONS)]
for turn in range(PROGRAMS):
    run, kinds = functions[turn % FUNCTIONS]
    scale = float(turn + 1)
    for kind, value in zip(kinds, run(tf.constant(scale))):
        assert abs(float(value) - expected(kind, scale)) <= 1e-3 * expected(kind, scale), (turn, kind, float(value))
hvd.shutdown()
print(f"{PROGRAMS} programs", flush=True)
