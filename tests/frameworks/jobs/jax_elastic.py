"""Trains within jit while rank 2 of the first world is killed in the middle of a step, and replaced. Before each commit rank 0 prints a line of JSON:
the world, what an average of the ranks' numbers (from 1) was, and how often the step has been traced so far. Ends some steps after the job has grown
again. `gather`: the step also has an allgather, whose shape depends on the number of ranks.
"""

import json
import os
import signal
import sys

import jax
import jax.numpy as jnp
import numpy

import horovod.jax as hvd
from horovod import _ffi

GATHER = "gather" in sys.argv
DIE_AT, STEPS_AFTERWARDS, SIZE = 4, 4, 200_000

hvd.init()
traces = 0


def kill_if_wanted(wanted):
    if wanted:
        os.kill(os.getpid(), signal.SIGKILL)
    return wanted


@jax.jit
def train_step(weights, own, wanted):
    global traces
    traces += 1
    wanted = jax.pure_callback(kill_if_wanted, jax.ShapeDtypeStruct((), numpy.bool_), wanted)
    average = hvd.allreduce({"own": jnp.where(wanted, jnp.nan, own), "more": own * 2})
    ranks = hvd.allgather(own[:1]) if GATHER else own[:1]
    return weights + average["own"], average, ranks


@hvd.elastic.run
def train(state):
    while state.afterwards < STEPS_AFTERWARDS:
        world, size = _ffi.query("epoch"), hvd.size()
        dies = world == 1 and state.step == DIE_AT and hvd.rank() == 2
        own = jnp.full(SIZE, hvd.rank() + 1.0)
        state.weights, average, ranks = train_step(state.weights, own, dies)
        state.step += 1
        state.total += (size + 1) / 2
        state.afterwards += world > 2 and size == 3
        if hvd.rank() == 0:
            assert not GATHER or ranks.tolist() == list(range(1, size + 1))
            seen = dict(world=world, size=size, step=state.step, average=float(average["own"][-1]), traces=traces)
            print(json.dumps({**seen, "more": float(average["more"][0])}), flush=True)
        state.commit()


state = hvd.elastic.JaxState(weights=jnp.zeros(SIZE), step=0, total=0.0, afterwards=0)
train(state)
everything = hvd.allgather_object((state.step, state.total, float(state.weights[0]), float(state.weights[-1])))
assert everything == [(state.step, state.total, state.total, state.total)] * hvd.size(), everything
