"""Handwritten digits, those of scikit-learn, with JAX on several workers."""

import jax
import jax.numpy as jnp
import numpy
import optax
from sklearn.datasets import load_digits

import horovod.jax as hvd

EPOCHS, BATCH, RATE = 5, 32, 2e-3

hvd.init()
digits = load_digits()  # 1797 images of 8x8
order = numpy.random.RandomState(0).permutation(len(digits.target))
images = (digits.images[order, :, :, None] / 16).astype("float32")
labels = digits.target[order]
own = numpy.arange(hvd.rank(), 1500 // hvd.size() * hvd.size(), hvd.size())  # of the first 1500


def new_params(key):
    kernel, first, second = jax.random.split(key, 3)
    scale = jax.nn.initializers.he_normal()
    return {
        "kernel": scale(kernel, (3, 3, 1, 16)),
        "first": (scale(first, (16 * 64, 64)), jnp.zeros(64)),
        "second": (scale(second, (64, 10)), jnp.zeros(10)),
    }


def scores_of(params, x):
    x = jax.lax.conv_general_dilated(x, params["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu(x).reshape(len(x), -1)
    for weights, bias in (params["first"], params["second"]):
        x = jax.nn.relu(x) @ weights + bias
    return x


def loss_of(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(scores_of(params, x), y).mean()


optimizer = hvd.DistributedOptimizer(optax.adam(RATE))


@jax.jit
def train_step(params, opt_state, x, y):
    gradients = jax.grad(loss_of)(params, x, y)
    updates, opt_state = optimizer.update(gradients, opt_state)  # the averages of all workers' gradients
    return optax.apply_updates(params, updates), opt_state


@jax.jit
def test_accuracy(params):
    return (scores_of(params, images[1500:]).argmax(-1) == labels[1500:]).mean()


params = hvd.broadcast_parameters(new_params(jax.random.key(hvd.rank())), root_rank=0)
opt_state = optimizer.init(params)
for epoch in range(1, EPOCHS + 1):
    numpy.random.RandomState(epoch).shuffle(own)
    for start in range(0, len(own) - BATCH + 1, BATCH):
        batch = own[start : start + BATCH]
        params, opt_state = train_step(params, opt_state, images[batch], labels[batch])
    if hvd.rank() == 0:
        print(f"epoch {epoch}: test accuracy {100 * test_accuracy(params):.1f}%, workers: {hvd.size()}", flush=True)
