"""Rank 1 ends while rank 0 runs one more allreduce, whose result it does not read: leaves_first.py jax|tensorflow FIFO [shutdown]"""

import sys

framework, fifo, *way = sys.argv[1:]


def jax_step():
    import jax

    def step(x):
        # Long enough for JAX not to run it at once.
        x = jax.lax.fori_loop(0, 10, lambda _, x: jax.numpy.tanh(x @ x), x)
        return hvd.allreduce(x)

    one = jax.numpy.ones((200, 200))
    compiled = jax.jit(step)
    return lambda: compiled(one)


def tensorflow_step():
    import tensorflow as tf

    one = tf.ones(4)
    return tf.function(lambda: hvd.allreduce(one))


if framework == "jax":
    import horovod.jax as hvd
else:
    import horovod.tensorflow as hvd

hvd.init()
step = jax_step() if framework == "jax" else tensorflow_step()
first = step()
float(first.ravel()[0] if framework == "jax" else first[0])
if hvd.rank() == 0 and framework == "jax":
    step()
if hvd.rank() == 0:
    open(fifo, "w").close()
else:
    open(fifo).close()
if hvd.rank() == 0 and framework != "jax":
    step()
print("end", flush=True)
if way:
    hvd.shutdown()
