"""Operations of horovod.jax on arrays of the GPU, within jit and outside, against numpy: every rank knows what all have.

JAX_ARRAYS_PATH: "nccl"; "host", if the ranks can't use NCCL; or "cpu", on any machine."""

import os
import sys

os.environ.update(NCCL_NET="Socket", NCCL_MNNVL_ENABLE="0")
os.environ.setdefault("NCCL_DEBUG", "WARN")
if os.environ["JAX_ARRAYS_PATH"] == "nccl":
    os.environ["NCCL_HOSTID"] = f"host-of-process-{os.getpid()}"  # NCCL takes each rank for a separate host

import functools
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd
from checks import Skipped, check, run_all
from horovod.jax import _device_path, _host

PATH = os.environ["JAX_ARRAYS_PATH"]
hvd.init()
if jax.default_backend() == "cpu" and PATH != "cpu":
    print("JAX sees no GPU", flush=True)
    hvd.shutdown()
    sys.exit()
jax.config.update("jax_enable_x64", True)
SIZE, RANK = hvd.size(), hvd.rank()
FLOATS = ("float16", "bfloat16", "float32", "float64")
TYPES = (*FLOATS, "uint8", "int8", "int16", "int32", "int64", "bool", "complex64")
if PATH == "host":
    TYPES = ("bfloat16", "int32", "bool")
WAYS = {"eager": lambda function: function, "jit": jax.jit}


def check_unless_on_host(function):
    """Through host memory it would show nothing new, and a program takes long to compile."""
    return function if PATH == "host" else check(function)


def of_rank(rank, dtype="float32", shape=(12, 3)):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 4 + rank + 1
    return (values % 2 if dtype == "bool" else values).astype(jnp.dtype(dtype))


def of_all(*args):
    return np.stack([of_rank(rank, *args) for rank in range(SIZE)])


def mine(*args):
    return jnp.asarray(of_rank(RANK, *args))


def expect(found, wanted):
    assert isinstance(found, jax.Array) and found.devices() == {jax.devices()[0]}, type(found)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (
        found.dtype,
        found.shape,
        wanted.dtype,
        wanted.shape,
    )
    assert (np.asarray(found) == wanted).all(), (np.asarray(found).ravel()[:5], wanted.ravel()[:5])


def sum_of(every):
    return every.max(0) if every.dtype == bool else every.sum(0, dtype=every.dtype)


def all_operations(array):
    """The results of all operations for an array, in one program."""
    adds = {"op": hvd.Max} if array.dtype == bool else {"op": hvd.Sum}
    return {
        "sum": hvd.allreduce(array, **adds),
        "gathered": hvd.allgather(array),
        "root's": hvd.broadcast(array, SIZE - 1),
        "exchanged": hvd.alltoall(array),
        "scattered": hvd.reducescatter(array, **adds),
        "group": hvd.allreduce([array, array[:5]], **adds),
    }


@check
def operations_of_all_types():
    for dtype in TYPES:
        every, whole = of_all(dtype), sum_of(of_all(dtype))
        for way in WAYS.values():
            found = way(all_operations)(mine(dtype))
            expect(found["sum"], whole)
            expect(found["gathered"], np.concatenate(every))
            expect(found["root's"], every[-1])
            expect(found["exchanged"], np.concatenate([np.split(own, SIZE)[RANK] for own in every]))
            expect(found["scattered"], np.split(whole, SIZE)[RANK])
            expect(found["group"][0], whole)
            expect(found["group"][1], whole[:5])


@check
def reductions():
    def reduce(array):
        return [hvd.allreduce(array, op=op) for op in (hvd.Average, hvd.Min, hvd.Max, hvd.Product)]

    every = of_all()
    wanted = (every.mean(0), every.min(0), every.max(0), every.prod(0))
    for way in WAYS.values():
        for found, own in zip(way(reduce)(mine()), wanted):
            expect(found, own.astype("float32"))
        expect(way(lambda x: hvd.allreduce(x, None, hvd.Sum, 0.5, 4.0))(mine()), every.sum(0) * 2)
        # These two can't be done on the device.
        expect(way(hvd.allreduce)(mine("int32")), (of_all("int32").sum(0) // SIZE).astype("int32"))
        expect(way(lambda x: hvd.allreduce(x, op=hvd.Adasum))(jnp.ones(4) * 3), np.full(4, 3.0))


@check_unless_on_host
def shapes():
    for way in WAYS.values():
        for shape in ((), (0, 2), (1,), (1000, 1001)):
            expect(way(lambda x: hvd.allreduce(x, op=hvd.Sum))(mine("float32", shape)), of_all("float32", shape).sum(0))


@check_unless_on_host
def rows_that_differ_outside_of_jit():
    gathered = hvd.allgather(mine("bfloat16", (RANK + 1, 2)))
    expect(gathered, np.concatenate([of_rank(rank, "bfloat16", (rank + 1, 2)) for rank in range(SIZE)]))
    splits = [rank + 1 for rank in range(SIZE)]
    rows, received = hvd.alltoall(mine("float32", (sum(splits), 2)), splits)
    start = sum(splits[:RANK])
    expect(rows, np.concatenate([of_rank(r, "float32", (sum(splits), 2))[start:][: RANK + 1] for r in range(SIZE)]))
    assert received.tolist() == [RANK + 1] * SIZE


@check
def heavy_work_before_and_use_right_after():
    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, permutation):
        for _ in range(8):  # what a stream that is not waited for would miss
            state = state @ permutation
        return hvd.allreduce(state) + 1.0

    side = 512 if PATH == "cpu" else 4096
    permutation = jnp.roll(jnp.eye(side, dtype=jnp.float32), 1, 0)
    state = jnp.full((side, side), float(RANK))
    for _ in range(10):  # without waiting for any
        state = step(state, permutation)
    expect(state, np.full((side, side), (SIZE - 1) / 2 + 10, "float32"))


@check_unless_on_host
def independent_operations_of_one_program():
    @jax.jit
    def many(arrays):
        return [hvd.allreduce(own * 2.0, op=hvd.Sum) for own in arrays] + [hvd.allgather(own) for own in arrays]

    arrays = [mine("float32", (n + 1, 3)) for n in range(12)]
    for _ in range(3):
        found = many(arrays)
    for n in range(12):
        expect(found[n], of_all("float32", (n + 1, 3)).sum(0) * 2)
        expect(found[12 + n], np.concatenate(of_all("float32", (n + 1, 3))))


@check_unless_on_host
def loops_and_branches():
    @jax.jit
    def looped(x):
        return jax.lax.fori_loop(0, 5, lambda i, x: hvd.allreduce(x, op=hvd.Max) + 1.0, x)

    @jax.jit
    def branched(x, flag):
        return jax.lax.cond(flag, lambda x: hvd.allreduce(x, op=hvd.Sum), lambda x: x, x)

    expect(looped(mine()), of_all().max(0) + 5)
    expect(branched(mine(), True), of_all().sum(0))
    expect(branched(mine(), False), of_rank(RANK))


@check_unless_on_host
def gradients():
    def loss(x, weights):
        return (hvd.allreduce(x) * weights).sum() + (hvd.broadcast(x, 0) * 2.0).sum() + hvd.allgather(x).sum()

    for way in WAYS.values():
        found = way(jax.grad(loss))(mine(), mine())
        expect(found, (of_all().mean(0) + (RANK == 0) * 2.0 + 1.0).astype("float32"))


@check_unless_on_host
def training_equals_that_of_one_process():
    inputs = jnp.asarray(np.random.default_rng(1).normal(size=(SIZE * 16, 8)), jnp.float32)
    targets = jnp.sin(inputs.sum(1))
    first = {"w": jnp.full((8, 32), 0.1, jnp.float32), "v": jnp.linspace(-1, 1, 32, dtype=jnp.float32)}

    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)

    def train(gradient, x, y):
        step = jax.jit(
            lambda params: jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient(loss)(params, x, y))
        )
        params = first
        for _ in range(20):
            params = step(params)
        return params

    own = slice(RANK * 16, RANK * 16 + 16)
    found, wanted = train(hvd.grad, inputs[own], targets[own]), train(jax.grad, inputs, targets)
    for name in first:
        np.testing.assert_allclose(found[name], wanted[name], rtol=2e-3, atol=2e-4)
        assert not np.allclose(found[name], first[name])
    if importlib.util.find_spec("optax") is None:
        return
    import optax

    optimizer = hvd.DistributedOptimizer(optax.sgd(0.1))

    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss)(params, inputs[own], targets[own]), state, params)
        return optax.apply_updates(params, updates), state

    params, state = first, optimizer.init(first)
    for _ in range(20):
        params, state = step(params, state)
    for name in first:
        np.testing.assert_allclose(params[name], wanted[name], rtol=2e-3, atol=2e-4)


@check_unless_on_host
def parameters_of_the_root():
    tree = {"w": mine("bfloat16"), "key": jax.random.key(RANK), "n": mine("uint32")}
    found = hvd.broadcast_parameters(tree, SIZE - 1)
    expect(found["w"], of_rank(SIZE - 1, "bfloat16"))
    expect(found["n"], of_rank(SIZE - 1, "uint32"))
    assert (jax.random.key_data(found["key"]) == jax.random.key_data(jax.random.key(SIZE - 1))).all()


@check
def mismatches_are_said():
    for way in WAYS.values():
        try:
            jax.block_until_ready(way(hvd.allreduce)(jnp.ones(3 + RANK)))
        except Exception as error:
            assert "Mismatched allreduce" in str(error), error
        else:
            raise AssertionError("it was not refused")
    try:
        jax.block_until_ready(jax.jit(hvd.allgather)(jnp.ones(3 + RANK)))
    except Exception as error:
        assert "equally many rows" in str(error), error
    else:
        raise AssertionError("it was not refused")


@check_unless_on_host
def eager_arrays_stay_on_the_device():
    if PATH != "nccl":
        raise Skipped("these ranks go through host memory")
    array, moved, from_jax = mine(), [], _host.from_jax
    _host.from_jax = lambda value: moved.append(value) or from_jax(value)
    try:
        assert _device_path.takes([array], {}), "the runtime does not take arrays of this JAX"
        hvd.allreduce(array)
        hvd.alltoall(array)
        hvd.broadcast(array, 0)
    finally:
        _host.from_jax = from_jax
    assert not moved


run_all(hvd)
