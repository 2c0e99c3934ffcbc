"""Arrays that every rank knows of all ranks, and operations in all ways in which JAX runs them."""

import importlib

import jax
import jax.numpy as jnp
import numpy

import horovod.jax as hvd

# What jitted programs raise, unless it is a ValueError; older versions have another name for it.
JitError = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
WAYS = {"eager": lambda function: function, "jit": jax.jit}


def x64():
    """A context in which JAX has types of 64 bits."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64()


def of_rank(rank, shape=(4, 3), dtype="float32"):
    return (numpy.arange(numpy.prod(shape)).reshape(shape) % 3 + rank + 1).astype(jnp.dtype(dtype))


def of_all(*args):
    return numpy.stack([of_rank(rank, *args) for rank in range(hvd.size())])


def mine(*args):
    return jnp.asarray(of_rank(hvd.rank(), *args))


def check(result, expected):
    """The result is a JAX array of the expected type and values."""
    assert isinstance(result, jax.Array)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    numpy.testing.assert_array_equal(numpy.asarray(result), expected)
