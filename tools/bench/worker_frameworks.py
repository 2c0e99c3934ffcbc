"""Allreduces of a framework's tensors in one way, as the referee asks for them. Started by frameworks.py:

    worker_frameworks.py HOW SOCKET NAME [RANK SIZE ADDRESSES]

HOW: torch, tf, tf-eager and jax (under horovodrun), mpi4jax (under mpirun); strategy and psum, which get the last three arguments (commas between the
addresses). The referee's operation is what to reduce: a number of bytes (4B, 1MB), so much in a group of N tensors (64MB/16), or resnet50.
"""

import ctypes
import json
import os
import sys

import numpy

from bench_client import serve, time_calls

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # malloc.h
UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}


def keep_memory():
    """Has glibc keep freed memory, and have some. Otherwise a call's results are new pages from the kernel, which
    take several times as long as the operation, whatever the library.

    One arena for all threads: the others hold no block of 64 MB."""
    mallopt = ctypes.CDLL(None).mallopt
    for parameter in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
        mallopt(parameter, 1 << 30)
    mallopt(M_ARENA_MAX, 1)
    numpy.ones(512 << 20, "uint8")


def arrays_of(what):
    """The tensors of a row, as arrays."""
    if what == "resnet50":
        return [numpy.zeros(shape, "float32") for shape in resnet50_shapes()]
    size, _, count = what.partition("/")
    unit = size.lstrip("0123456789")
    elements = int(size[: -len(unit)]) * UNITS[unit] // 4 // int(count or 1)
    return [numpy.zeros(elements, "float32") for _ in range(int(count or 1))]


def resnet50_shapes():
    import models

    return models.resnet50_shapes()


class Torch:
    def __init__(self):
        import torch

        import horovod.torch as hvd

        torch.set_num_threads(1)
        hvd.init()
        self._torch, self._hvd, self.rank, self.end = torch, hvd, hvd.rank(), hvd.shutdown

    def call(self, arrays):
        tensors = [self._torch.from_numpy(array) for array in arrays]
        return lambda: self._hvd.grouped_allreduce(tensors, op=self._hvd.Sum, name="bench")


def tensorflow():
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    return tf


class TensorFlow:
    def __init__(self, eager):
        self._tf = tensorflow()
        import horovod.tensorflow as hvd

        hvd.init()
        self._eager, self._hvd, self.rank, self.end = eager, hvd, hvd.rank(), hvd.shutdown

    def call(self, arrays):
        tensors = [self._tf.constant(array) for array in arrays]

        def step():
            return self._hvd.grouped_allreduce(tensors, op=self._hvd.Sum, name="bench")

        return step if self._eager else self._tf.function(step)


class Strategy:
    """tf.distribute's, with a ring over gRPC, the one that it has for CPUs."""

    def __init__(self, rank, size, addresses):
        cluster = {"cluster": {"worker": addresses.split(",")}, "task": {"type": "worker", "index": int(rank)}}
        os.environ["TF_CONFIG"] = json.dumps(cluster)
        tf = self._tf = tensorflow()
        self._options = tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental.CommunicationImplementation.RING
        )
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=self._options)
        self.rank, self.end = int(rank), lambda: None

    def call(self, arrays):
        tf = self._tf
        tensors = [tf.constant(array) for array in arrays]

        def reduce():
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors, self._options)

        return tf.function(lambda: self._strategy.run(reduce))


def jax_module():
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    return jax


class Jax:
    def __init__(self):
        self._jax = jax_module()
        import horovod.jax as hvd

        hvd.init()
        self._hvd, self.rank, self.end = hvd, hvd.rank(), hvd.shutdown

    def call(self, arrays):
        tensors = [self._jax.numpy.asarray(array) for array in arrays]
        step = self._jax.jit(lambda values: self._hvd.grouped_allreduce(values, op=self._hvd.Sum))
        return lambda: self._jax.block_until_ready(step(tensors))


class Psum:
    def __init__(self, rank, size, addresses):
        jax = self._jax = jax_module()
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(addresses, num_processes=int(size), process_id=int(rank))
        self.rank, self.end = int(rank), lambda: None

    def call(self, arrays):
        jax = self._jax
        mesh = jax.sharding.Mesh(numpy.array(jax.devices()), ("ranks",))
        spec = jax.sharding.PartitionSpec("ranks")
        sharding = jax.sharding.NamedSharding(mesh, spec)
        tensors = [jax.make_array_from_process_local_data(sharding, array[None]) for array in arrays]
        step = jax.jit(
            jax.shard_map(
                lambda values: jax.lax.psum(values, "ranks"),
                mesh=mesh,
                in_specs=spec,
                out_specs=jax.sharding.PartitionSpec(),
            )
        )
        return lambda: jax.block_until_ready(step(tensors))


class Mpi4jax:
    def __init__(self):
        self._jax = jax_module()
        import mpi4jax
        from mpi4py import MPI

        self._mpi4jax, self._mpi, self.rank, self.end = mpi4jax, MPI, MPI.COMM_WORLD.Get_rank(), lambda: None

    def call(self, arrays):
        tensors = [self._jax.numpy.asarray(array) for array in arrays]
        step = self._jax.jit(lambda values: [self._mpi4jax.allreduce(value, op=self._mpi.SUM) for value in values])
        return lambda: self._jax.block_until_ready(step(tensors))


WAYS = {
    "torch": Torch,
    "tf": lambda: TensorFlow(eager=False),
    "tf-eager": lambda: TensorFlow(eager=True),
    "strategy": Strategy,
    "jax": Jax,
    "psum": Psum,
    "mpi4jax": Mpi4jax,
}


def main():
    keep_memory()
    library = WAYS[sys.argv[1]](*sys.argv[4:])
    made = {}

    def handle(what, _, size, calls, block):
        if what not in made:
            made.clear()
            made[what] = library.call(arrays_of(what))
        return time_calls(made[what], calls, block)

    serve(sys.argv[2], sys.argv[3], library.rank, handle)
    library.end()


main()
