"""Operations of horovod.jax on arrays of the GPU, which equal those on the CPU's; within jit they are refused there."""

import os
import sys

os.environ["NCCL_HOSTID"] = "host-of-rank-" + os.environ["HOROVOD_RANK"]

import jax
import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd

hvd.init()
if jax.default_backend() == "cpu":
    print("JAX sees no GPU", flush=True)
    hvd.shutdown()
    sys.exit()
gpu, cpu = jax.devices("gpu")[0], jax.devices("cpu")[0]
for dtype in (jnp.float32, jnp.bfloat16, jnp.int32, jnp.bool_):
    values = (np.arange(1000) % 7 + hvd.rank()).astype(dtype)
    for operation in (hvd.allreduce, hvd.allgather, hvd.reducescatter):
        options = {} if operation is hvd.allgather else {"op": hvd.Max}
        found = operation(jax.device_put(values, gpu), **options)
        expected = operation(jax.device_put(values, cpu), **options)
        assert found.devices() == {gpu}, found.devices()
        assert (np.asarray(found) == np.asarray(expected)).all(), (dtype, operation)
    root = hvd.size() - 1
    assert (
        np.asarray(hvd.broadcast(jax.device_put(values, gpu), root)) == (np.arange(1000) % 7 + root).astype(dtype)
    ).all()
try:
    jax.jit(hvd.allreduce)(jax.device_put(jnp.ones(5), gpu)).block_until_ready()
except Exception as error:
    assert "cpu" in str(error).lower(), error
else:
    raise AssertionError("an operation within jit on a GPU was not refused")
print("all as on the host", flush=True)
hvd.shutdown()
